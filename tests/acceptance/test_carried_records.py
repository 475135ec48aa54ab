"""The records that the repository carries: whose they are, and what validation finds in them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kvplan import api
from kvplan.measurement import Measurement
from kvplan.planning.validate.summary import summarise
from kvplan.sources.measurements import read_measurements
from kvplan.sources.model_specs import find_model_spec
from kvplan.validation import Validation

VALIDATION = Path(__file__).parents[2] / "validation"
FILE = VALIDATION / "records" / "vllm.jsonl"
SWEEP = "llm-d-incubation/llm-d-planner"


@pytest.fixture(scope="module")
def records() -> tuple[Measurement, ...]:
    return tuple(read_measurements(str(FILE)))


@pytest.fixture(scope="module")
def found(records: tuple[Measurement, ...]) -> Validation:
    return api.validate(records, offline=True)


def test_every_record_has_a_public_source_and_a_bundled_model(
    records: tuple[Measurement, ...],
) -> None:
    assert len({record.id for record in records}) == len(records) >= 120
    for record in records:
        assert record.source
        assert "public-file" not in record.source
        stand_in = (record.model_extra or {}).get("config")
        assert find_model_spec(stand_in or record.model or "") is not None


def test_no_model_is_missing_on_a_clean_checkout(found: Validation) -> None:
    assert not [each for each in found.records if "unknown model" in (each.skipped or "")]
    assert found.summary.skipped <= 20


def test_the_sweep_and_the_others_are_as_close_as_they_were(
    records: tuple[Measurement, ...], found: Validation
) -> None:
    """More than 5 % too much: no start of the sweep, four others. Cross-validation is apart."""
    pairs = list(zip(records, found.records, strict=True))
    for of_sweep, n, median, p90_of_card, optimistic in (
        (True, 32, 0.003, 0.005, 0),
        (False, 32, 0.04, 0.03, 4),
    ):
        members = [
            checked
            for record, checked in pairs
            if (record.source or "").startswith(SWEEP) == of_sweep
        ]
        check = summarise(members).end_to_end
        assert check.n == n
        assert (check.median_relative_error or 0) <= median
        assert (check.p90_share_of_card or 0) <= p90_of_card
        assert (check.optimistic_over_5_percent or 0) * n <= optimistic


def test_verdicts(found: Validation) -> None:
    verdict = found.summary.verdict
    assert verdict.refusals_predicted / verdict.refusals >= 0.85
    assert verdict.starts_called_refused / verdict.starts <= 0.02


def test_the_fit_can_be_run_again() -> None:
    done = subprocess.run(
        [sys.executable, str(VALIDATION / "fit_runtime.py"), "--partitions", "1"],
        capture_output=True,
        encoding="utf-8",
        timeout=300,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "64 of them judged" in done.stdout
    cells = [[cell.strip() for cell in row.split("|")] for row in done.stdout.splitlines()]
    found = {row[2]: row for row in cells if row[1:2] == ["other folds, partition 0"]}
    assert found["H100 sweep"][3] == "32"
    assert float(found["H100 sweep"][4].removesuffix(" %")) <= 0.3
    assert float(found["all"][8].removesuffix(" %")) >= 88
    assert float(found["all"][9].removesuffix(" %")) <= 4
