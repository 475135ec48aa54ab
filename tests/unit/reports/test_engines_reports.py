"""Engines side by side, in every format."""

from __future__ import annotations

import csv
import json
from io import StringIO

import pytest
from sample_comparisons import asked, comparison
from syrupy.assertion import SnapshotAssertion

from kvplan._version import __version__
from kvplan.engine_comparison import EngineComparison
from kvplan.reports.engines_rows import headline
from kvplan.reports.render import Format
from kvplan.reports.render_engines import render_engines


@pytest.mark.parametrize("width", [80, 140])
def test_text(width: int, snapshot: SnapshotAssertion) -> None:
    text = render_engines(comparison(), "text", width=width)
    assert max(map(len, text.splitlines())) <= width
    assert text == snapshot


def test_engines_that_do_not_fit_beside_one_another_follow() -> None:
    text = render_engines(comparison(), "text", width=60, ascii_only=True)
    assert text.isascii()
    assert text.count("Whole requests") == 2
    assert max(map(len, text.splitlines())) <= 60


def test_markdown(snapshot: SnapshotAssertion) -> None:
    assert render_engines(comparison(), "markdown") == snapshot


def test_csv(snapshot: SnapshotAssertion) -> None:
    text = render_engines(comparison(), "csv")
    assert text == snapshot
    rows = list(csv.DictReader(StringIO(text)))
    assert [row["engine"] for row in rows] == ["vllm", "sglang", "llama.cpp", "tensorrt-llm"]
    assert rows[0]["requests"]
    assert rows[2]["requests"] == ""


def test_json_is_the_comparison_itself() -> None:
    made = json.loads(render_engines(comparison(), "json"))
    assert made["schema"] == "kvplan.engines/1"
    assert made["kvplan_version"] == __version__
    assert EngineComparison.model_validate(made) == comparison()


def test_a_hostile_name_does_nothing() -> None:
    entry = asked()[3]
    hostile = entry.outcome
    entry = type(entry)("=cmd()", "\x1b[2J", hostile)
    forms: tuple[Format, ...] = ("text", "markdown", "csv")
    for form in forms:
        text = render_engines(comparison((entry,)), form)
        assert "\x1b" not in text
    assert "'=cmd()" in render_engines(comparison((entry,)), "csv")


def test_headline() -> None:
    assert headline(comparison()).startswith("vllm holds most: ")
    assert headline(comparison(asked()[2:])) == (
        "No engine holds a request of 32,768 tokens on H100-SXM-80GB."
    )
