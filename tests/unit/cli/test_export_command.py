"""`kvplan export`: every form, real traffic, saved plans and sweeps, and wrong words."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from kvplan.cli.main import run

openpyxl = pytest.importorskip("openpyxl")
pytest.importorskip("xlsxwriter")
pytest.importorskip("jinja2")
PAGE = (Path(__file__).parents[3] / "docs" / "export.md").read_text(encoding="utf-8")
ASKED = ("Qwen/Qwen3-8B", "--gpu", "L40S", "--context", "16k", "--concurrency", "4", "--offline")
TRAFFIC = ("--lengths", "p50=1k,p95=4k/300", "--rate", "1/s", "--decode-rate", "30",
           "--daily", "peak=2")  # fmt: skip
SWEPT = ("sweep", "Qwen/Qwen3-8B", "--vary", "gpu=L4,L40S", "--vary", "context=4k..32k*2",
         "--vary", "concurrency=1,8", "--offline")  # fmt: skip


def printed(capsys: pytest.CaptureFixture[str], words: Sequence[str]) -> tuple[int, str, str]:
    code = run(list(words))
    out, err = capsys.readouterr()
    return code, out, err


def sheets(path: Path) -> Any:
    return openpyxl.load_workbook(BytesIO(path.read_bytes()))


@pytest.mark.parametrize("ending", ["xlsx", "html", "csv", "json", "md", "txt"])
def test_each_form(capsys: pytest.CaptureFixture[str], tmp_path: Path, ending: str) -> None:
    file = tmp_path / f"plan.{ending}"
    code, out, err = printed(capsys, ("export", str(file), *ASKED))
    assert (code, out) == (0, "")
    assert err.startswith("Fits: ")
    assert file.stat().st_size > 500


def test_real_traffic_is_on_the_sheet_and_on_the_page(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for ending in ("xlsx", "html"):
        code, _, _ = printed(capsys, ("export", str(tmp_path / f"t.{ending}"), *ASKED, *TRAFFIC))
        assert code == 0
    book = sheets(tmp_path / "t.xlsx")
    words = [str(cell.value) for row in book["Traffic"].iter_rows() for cell in row]
    assert "Traffic: p50=1k,p95=4k/300" in words
    assert {"Hour", "Risk as planned", "With the smallest pool"} <= set(words)
    assert {"traffic_factor", "traffic_gpus_needed"} <= set(book.defined_names)
    page = (tmp_path / "t.html").read_text(encoding="utf-8")
    assert "Risk against load: p50=1k,p95=4k/300" in page
    assert "chosen risk 0.1 %" in page
    assert "The day as a table" in page


def test_traffic_that_does_not_fit_is_a_no(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    words = ("--lengths", "8k/300", "--rate", "50/s", "--decode-rate", "20")
    code, _, _ = printed(capsys, ("export", str(tmp_path / "t.html"), *ASKED, *words))
    assert code == 1
    page = (tmp_path / "t.html").read_text(encoding="utf-8")
    assert "Does not fit: there is too little memory" in page


def test_a_sweep_in_every_form(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    saved = tmp_path / "sweep.json"
    assert printed(capsys, (*SWEPT, "--output", str(saved)))[0] == 0
    for ending in ("xlsx", "html", "csv", "json", "md", "txt"):
        file = tmp_path / f"again.{ending}"
        code, _, err = printed(capsys, ("export", str(file), "--sweep", str(saved)))
        assert code == 0
        assert err.startswith("16 points: ")
        direct = tmp_path / f"direct.{ending}"
        assert printed(capsys, (*SWEPT, "--output", str(direct)))[0] == 0
        if ending != "xlsx":
            assert direct.read_bytes() == file.read_bytes()
    book = sheets(tmp_path / "again.xlsx")
    assert book.sheetnames == ["Sweep", "Curves", "Notes"]
    assert {"concurrency", "price_per_gpu_hour"} <= set(book.defined_names)


@pytest.mark.parametrize(
    "words",
    [
        ("plan.pdf", *ASKED),
        ("plan", *ASKED),
        ("plan.xlsx", "Qwen/Qwen3-8B"),
        ("plan.xlsx", "--gpu", "L4"),
        ("plan.xlsx", *ASKED, "--price", "cheap"),
        ("plan.csv", *ASKED, "--lengths", "1k/300"),
        ("plan.xlsx", *ASKED, "--rate", "5/s"),
        ("plan.xlsx", *ASKED, "--plan", "plan.json"),
        ("plan.xlsx", *ASKED, "--sweep", "sweep.json"),
        ("plan.xlsx", "--plan", "plan.json", "--sweep", "sweep.json"),
        ("plan.xlsx", "--sweep", "nowhere.json"),
        ("plan.xlsx", "--plan", "nowhere.json"),
        ("no/such/folder/plan.xlsx", *ASKED),
    ],
)
def test_wrong_words_write_nothing(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: Sequence[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = printed(capsys, ("export", *words))
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert "hint: " in err
    assert not list(tmp_path.iterdir())


def test_a_saved_plan_can_not_be_held_against_traffic(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    saved = tmp_path / "plan.json"
    _, out, _ = printed(capsys, ("size", *ASKED, "--format", "json"))
    saved.write_text(out, encoding="utf-8")
    code, _, err = printed(
        capsys, ("export", str(tmp_path / "p.xlsx"), "--plan", str(saved), *TRAFFIC)
    )
    assert code == 2
    assert "only its engine knows" in err
    assert json.loads(out)["verdict"] == "fits"


@pytest.mark.parametrize("line", re.findall(r"^kvplan (.*)$", PAGE, re.MULTILINE))
def test_the_commands_on_the_page_run(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    monkeypatch.chdir(tmp_path)
    first, _, second = line.partition(" | kvplan ")
    parts = [shlex.split(part) for part in (first, second) if part]
    if "--sweep" in parts[0]:
        assert printed(capsys, [*SWEPT, "--output", "sweep.json"])[0] == 0
    if len(parts) == 2:
        code, out, _ = printed(capsys, parts[0])
        (tmp_path / "saved.json").write_text(out, encoding="utf-8")
        parts[1][parts[1].index("-")] = "saved.json"
        assert code in (0, 1)
    assert printed(capsys, parts[-1])[0] in (0, 1)
    written = {path.name for path in tmp_path.iterdir()}
    assert written & {"plan.xlsx", "plan.html", "sweep.xlsx", parts[-1][-1]}
