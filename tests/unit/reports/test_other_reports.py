"""JSON, CSV and Markdown: exact, inert, and free of what they do not need."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
from io import StringIO

import pytest
from sample_plans import SAMPLES, does_not_fit, fits

from kvplan.plan import Plan, Reason
from kvplan.reports.csv_report import COLUMNS
from kvplan.reports.render import render


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_json_is_the_plan_itself(name: str) -> None:
    plan = SAMPLES[name]()
    text = render(plan, "json")
    assert text.endswith("}\n")
    assert text.isascii()
    assert json.loads(text) == plan.model_dump(mode="json", by_alias=True)
    assert Plan.model_validate_json(text) == plan


def test_json_carries_the_schema_first() -> None:
    assert next(iter(json.loads(render(fits(), "json")).items())) == ("schema", "kvplan.plan/1")


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_csv_has_the_ledger_and_nothing_else(name: str) -> None:
    plan = SAMPLES[name]()
    header, *rows = csv.reader(StringIO(render(plan, "csv")))
    assert tuple(header) == COLUMNS
    assert [(row[0], int(row[2])) for row in rows] == [
        (line.name, line.bytes) for line in plan.ledger
    ]
    if rows:
        assert sum(float(row[5]) for row in rows) == pytest.approx(1, abs=1e-4)


def test_csv_text_is_never_a_formula() -> None:
    plan = fits()
    line = plan.ledger[0].model_copy(
        update={"name": "=cmd|' /C calc'!A0", "formula": "-a", "source": "@SUM(A1)\n+1"}
    )
    plan = plan.model_copy(update={"ledger": (line,)})
    row = list(csv.reader(StringIO(render(plan, "csv"))))[1]
    assert row[0] == "'=cmd|' /C calc'!A0"
    assert row[7] == "'-a"
    assert row[8] == "'@SUM(A1) +1"


def test_csv_leaves_negative_numbers_numbers() -> None:
    rows = list(csv.reader(StringIO(render(SAMPLES["too_big"](), "csv"))))
    assert int(rows[-1][2]) < 0


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_every_markdown_row_has_as_many_cells_as_its_header(name: str) -> None:
    text = render(SAMPLES[name](), "markdown", explain=True)
    for block in text.split("\n\n"):
        rows = [line for line in block.splitlines() if line.startswith("|")]
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in rows}) <= 1


def test_markdown_starts_with_the_verdict_and_folds_the_ledger() -> None:
    text = render(does_not_fit(), "markdown")
    assert text.startswith("**Does not fit: ")
    assert "<details><summary>Ledger of one GPU, 12 lines</summary>" in text


def test_markdown_from_outside_is_inert() -> None:
    plan = does_not_fit()
    evil = "x | y <script>alert(1)</script> [a](http://b) @team `code`"
    plan = plan.model_copy(
        update={
            "model": plan.model.model_copy(update={"id": evil}),
            "reasons": (Reason(code="x", message=evil, hint=evil),),
        }
    )
    text = render(plan, "markdown")
    assert "<script" not in text.replace("\\<script", "")
    assert "@team" not in text
    assert "](http" not in text.replace("\\](http", "")


@pytest.mark.parametrize("wanted", ["json", "csv", "markdown"])
def test_only_the_text_report_loads_rich(wanted: str) -> None:
    code = (
        "import sys; from sample_plans import fits; from kvplan.reports.render import render;"
        f" render(fits(), {wanted!r}); sys.exit('rich' in sys.modules)"
    )
    path = [path for path in sys.path if path]
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": ":".join(path)})
