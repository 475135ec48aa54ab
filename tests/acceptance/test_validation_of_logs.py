"""Public start-up logs through every check, and the tables that are published of them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from measured_starts import CONFIG, record

from kvplan import api
from kvplan.planning.validate.summary import summarise
from kvplan.sources.measurements import read_measurements
from kvplan.validation import CHECK_NAMES, Validation

FOLDER = Path(__file__).parents[2] / "validation"
sys.path.insert(0, str(FOLDER))

import fit_runtime  # noqa: E402 - see the path above
from page.causes import cause_of  # noqa: E402 - same
from page.folds import fingerprint  # noqa: E402 - same

SCRIPT = FOLDER / "accuracy.py"


@pytest.fixture(scope="module")
def validation(shared: Path) -> Validation:
    records = tuple(read_measurements(str(shared / "measurements" / "vllm_eval.jsonl")))
    return api.validate(records, offline=True, configs=shared / "configs")


@pytest.fixture(scope="module")
def adapters(shared: Path) -> set[str]:
    """The starts whose log says that adapters were enabled."""
    records = read_measurements(str(shared / "measurements" / "vllm_eval.jsonl"))
    return {each.id or "" for each in records if (each.model_extra or {}).get("lora")}


def test_every_record_is_counted_in_every_check(validation: Validation) -> None:
    total = len(validation.records)
    assert total >= 200
    for name in CHECK_NAMES:
        check = getattr(validation.summary, name)
        assert check.n + sum(check.skipped.values()) == total


def test_geometry_is_what_the_printed_bytes_give(validation: Validation) -> None:
    """Or a flag that the record leaves out explains it, but for a few."""
    checks = [each.geometry for each in validation.records if each.geometry]
    assert len(checks) >= 100
    assert sum(check.within_print_rounding for check in checks) >= 0.88 * len(checks)
    riddles = [c for c in checks if not c.within_print_rounding and c.reachable_with is None]
    assert len(riddles) <= 3


def test_weights(validation: Validation) -> None:
    weights = validation.summary.weights
    assert weights.n >= 80
    assert weights.median_relative_error is not None
    assert weights.median_relative_error <= 0.003
    assert weights.p90_relative_error is not None
    assert weights.p90_relative_error <= 0.02


def test_the_cache_from_flags_alone(validation: Validation) -> None:
    found = validation.summary.end_to_end
    assert found.n >= 55
    assert found.median_relative_error is not None
    assert found.median_relative_error <= 0.02


def test_verdicts(validation: Validation) -> None:
    found = validation.summary.verdict
    assert found.n >= 100
    assert found.starts_called_refused <= 0.03 * found.starts


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(SCRIPT), *arguments],
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three starts: of the sweep, of a thread, and of a source that is only counted."""
    (tmp_path / "org--toy").mkdir()
    (tmp_path / "org--toy" / "config.json").write_text(json.dumps(CONFIG))
    sources = ("llm-d-incubation/llm-d-planner#205", "vllm-project/vllm#1", "public-file:77")
    lines = [
        record(
            id=source[-2:], source=source, model="org/toy", version_band="0.20+", kv_tokens=number
        ).json_line()
        for number, source in enumerate(sources, 1)
    ]
    (tmp_path / "starts.jsonl").write_text("\n".join(lines))
    return tmp_path


def test_tables(folder: Path) -> None:
    done = _run(str(folder / "starts.jsonl"), "--configs", str(folder))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("3 starts, 0 of them skipped")
    for row in ("| geometry | 3 |", "| H100 sweep | 1 |", "| all other starts | 2 |"):
        assert row in done.stdout
    assert "| release 0.20+ | 3 |" in done.stdout


def test_numbered_sources_are_counted_and_not_shown(folder: Path) -> None:
    """All three miss by most of the card; one of them without its source."""
    text = _run(str(folder / "starts.jsonl"), "--configs", str(folder)).stdout
    assert "6 comparisons miss by more than 5 % of the card." in text
    assert text.count("| vllm-project/vllm#1 | ") == text.count("| counted only | ") == 2
    assert "public-file" not in text
    assert "77" not in text.partition("6 comparisons")[2].partition("skipped because")[0]
    assert text.count("no cause on file") == 6


def test_tables_take_the_place_of_the_old_ones(folder: Path) -> None:
    page = folder / "page.md"
    page.write_text("before\n<!-- accuracy: begin -->\nold\n<!-- accuracy: end -->\nafter\n")
    words = (str(folder / "starts.jsonl"), "--configs", str(folder), "--write", str(page))
    for _ in range(2):
        done = _run(*words)
        assert (done.returncode, done.stdout) == (0, "")
        text = page.read_text()
        assert text.startswith("before\n<!-- accuracy: begin -->\n\n3 starts")
        assert text.endswith("|\n\n<!-- accuracy: end -->\nafter\n")
        assert "old" not in text


def test_a_page_without_a_place_for_them(folder: Path) -> None:
    page = folder / "page.md"
    page.write_text("nothing")
    done = _run(str(folder / "starts.jsonl"), "--configs", str(folder), "--write", str(page))
    assert done.returncode == 1
    assert "has not the markers" in done.stderr
    assert page.read_text() == "nothing"


def test_records_that_can_not_be_read(tmp_path: Path) -> None:
    done = _run(str(tmp_path / "none.jsonl"))
    assert done.returncode == 2
    assert done.stderr.startswith("error: There is no file")


def _page() -> str:
    return (FOLDER / "README.md").read_text(encoding="utf-8")


def test_the_tables_of_the_page_are_those_of_the_command(shared: Path, tmp_path: Path) -> None:
    copy = tmp_path / "README.md"
    copy.write_text(_page(), encoding="utf-8")
    records = str(shared / "measurements" / "vllm_eval.jsonl")
    done = _run(records, "--configs", str(shared / "configs"), "--write", str(copy))
    assert (done.returncode, done.stderr) == (0, "")
    assert copy.read_text(encoding="utf-8") == _page()


def test_every_miss_on_the_page_has_its_cause() -> None:
    text = _page()
    far = text.partition("comparisons miss by more than 5 % of the card.")[2]
    rows = far.partition("| skipped because")[0].splitlines()
    causes = [row.split(" | ")[-1] for row in rows if row.startswith("| ")]
    assert len(causes) >= 9
    assert all(len(cause) > 100 for cause in causes if cause not in ("cause |", "--- |"))
    assert "no cause on file" not in text


def _folds() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / "folds.json").read_text(encoding="utf-8"))
    return found


def _rows(judged_on: str) -> list[dict[str, Any]]:
    """The rows of the partitions: nothing in them was judged by what had seen it."""
    rows = [row for row in _folds()["rows"] if row["judged_on"] == judged_on]
    return [row for row in rows if row["fitted_on"].startswith("other folds, partition ")]


def test_cross_validated_errors_are_within_the_targets() -> None:
    for row in _rows("H100 sweep"):
        assert row["n"] == 32
        assert row["median"] <= 0.003
        assert row["p90"] <= 0.02
    for row in _rows("all other starts"):
        assert row["n"] >= 43
        assert row["median"] <= 0.04
        assert row["optimistic"] <= 0.12
        assert row["p90_of_card"] <= 0.06


def test_cross_validated_ranges_hold_what_they_promise() -> None:
    rows = _rows("all")
    assert len(rows) == 5
    for row in rows:
        assert 0.88 <= row["in_range"] <= 0.96
        assert row["half_width"] <= 0.04


def test_starts_with_adapters_are_compared(validation: Validation, adapters: set[str]) -> None:
    """Of those that state rank and number; no constant has seen them."""
    found = [each for each in validation.records if each.id in adapters]
    checks = [check for each in found for check in (each.overhead, each.end_to_end) if check]
    assert len(checks) == 6
    assert all(check.in_interval for check in checks)
    assert all(abs(check.relative_error or 1) < 0.05 for check in checks)


def test_caches_beside_logged_weights_are_held_out_too(
    validation: Validation, adapters: set[str]
) -> None:
    """As many as validation compares without adapters, and with these constants what it finds."""
    rows = _rows("overhead")
    assert len(rows) == 5
    found = summarise([each for each in validation.records if each.id not in adapters]).overhead
    assert {row["n"] for row in rows} == {found.n}
    same = next(row for row in _folds()["rows"] if row["judged_on"] == "overhead")
    assert same["fitted_on"] == "the same starts"
    for name, expected in (
        ("median", found.median_relative_error),
        ("p90", found.p90_relative_error),
        ("in_range", found.interval_coverage),
        ("p90_of_card", found.p90_share_of_card),
        ("optimistic", found.optimistic_over_5_percent),
    ):
        assert same[name] == pytest.approx(expected, abs=1e-4)
    assert all(0.88 <= row["in_range"] <= 0.96 for row in rows)


def test_every_miss_of_a_held_out_start_has_its_cause() -> None:
    far = _folds()["far_off"]
    assert len(far) >= 10
    for each in far:
        assert each["of_card"][1] > 0.05
        assert "public-file" not in each["source"]
        assert len(cause_of(each["known_by"], each["check"])) > 100


def test_the_folds_are_those_of_the_calibration_in_force() -> None:
    """Whoever fits again has to cross-validate again."""
    assert _folds()["calibration"] == fingerprint()
    assert _folds()["settings"] == fit_runtime.settings()


def test_one_partition_comes_out_as_written_down(shared: Path) -> None:
    records = read_measurements(str(shared / "measurements" / "vllm_eval.jsonl"))
    samples = fit_runtime.read_samples(records, shared / "configs")
    assert len(samples) == _folds()["starts"]
    title = "other folds, partition 2"
    written = [row for row in _folds()["rows"] if row["fitted_on"] == title]
    found = fit_runtime.cross_validate(samples, 2)
    assert fit_runtime.partition_rows(found, 2) == written
