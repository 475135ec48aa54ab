"""What the workbook writes into cells."""

from __future__ import annotations

import math
from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvplan.errors import InputError, InternalError, UsageError
from kvplan.formula import compile_formula
from kvplan.plan_book import GroupRule, PoolRule, RequestRule
from kvplan.reports.workbook.excel import cell_name, in_cells
from kvplan.reports.workbook.sheet import Book, Formula, label

openpyxl = pytest.importorskip("openpyxl")
xlsxwriter = pytest.importorskip("xlsxwriter")

NAMES = {"a": "x", "b": "y", "c": "z"}


@pytest.mark.parametrize(
    ("formula", "cells"),
    [
        ("a - (b - c)", "x-(y-z)"),
        ("a - b - c", "x-y-z"),
        ("a / (b * c)", "x/(y*z)"),
        ("a * b / c", "x*y/z"),
        ("a // b // c", "INT(INT(x/y)/z)"),
        ("-a * b", "(-x)*y"),
        ("ceil(a / b) * c", "(-INT(-(x/y)))*z"),
        ("floor(a * 0.5)", "INT(x*0.5)"),
        ("max(a, min(b, c), 7)", "MAX(x,MIN(y,z),7)"),
        ("(a + b) * c", "(x+y)*z"),
        ("a // (b + c)", "INT(x/(y+z))"),
    ],
)
def test_a_formula_keeps_its_order(formula: str, cells: str) -> None:
    assert in_cells(formula, NAMES) == cells


def test_what_is_no_arithmetic_is_refused() -> None:
    with pytest.raises(InputError):
        in_cells("__import__('os')", {})
    with pytest.raises(InternalError):
        in_cells("a + d", NAMES)


def _as_python(text: str) -> str:
    return text.replace("INT(", "floor(").replace("MAX(", "max(").replace("MIN(", "min(")


_TERMS = st.recursive(
    st.sampled_from(["a", "b", "c", "3", "17"]),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*"]), inner).map(
            lambda t: f"({t[0]} {t[1]} {t[2]})"
        ),
        st.tuples(inner, st.sampled_from(["2", "5"])).map(lambda t: f"({t[0]} // {t[1]})"),
        st.tuples(inner, st.sampled_from(["2", "5"])).map(lambda t: f"ceil({t[0]} / {t[1]})"),
        st.tuples(inner, inner).map(lambda t: f"max({t[0]}, {t[1]})"),
    ),
    max_leaves=6,
)


@given(_TERMS, st.integers(1, 200), st.integers(1, 200), st.integers(1, 200))
def test_cells_give_what_the_formula_gives(text: str, a: int, b: int, c: int) -> None:
    inputs = {"a": a, "b": b, "c": c}
    cells = in_cells(text, {name: name for name in inputs})
    value = eval(_as_python(cells), {"floor": math.floor, "max": max, "min": min}, inputs)  # noqa: S307
    assert value == compile_formula(text).evaluate(inputs)


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "=cmd|'/c calc'!A1", "\x1b[2J"])
def test_text_stays_text_whatever_it_begins_with(text: str) -> None:
    out = BytesIO()
    with xlsxwriter.Workbook(out, {"in_memory": True}) as file:
        sheet = Book(file).sheet("A", (10,))
        sheet.put(0, text)
        sheet.put(1, Formula("1+1", 2))
    page = openpyxl.load_workbook(out)["A"]
    assert page["A1"].data_type == "s"
    assert page["B1"].data_type == "f"


def test_two_cells_cannot_have_one_name() -> None:
    with xlsxwriter.Workbook(BytesIO(), {"in_memory": True}) as file:
        sheet = Book(file).sheet("A", (10,))
        sheet.put(0, 1, name="blocks")
        with pytest.raises(InternalError):
            sheet.put(1, 1, name="Blocks")


def test_names_are_words() -> None:
    assert cell_name("in", "weights.lm-head", "gib") == "in_weights_lm_head_gib"
    assert label("kv_budget") == "KV budget"


def test_a_rule_counts_what_binds_first() -> None:
    full, window = GroupRule("full", 16), GroupRule("window", 16, fixed=1, most=5)
    state = GroupRule("recurrent", None, fixed=3)
    pool = PoolRule("kv", 101, 1, 51, 201, (full, window, state))
    rule = RequestRule((pool,), 8, 1, 4096)
    assert pool.request_units(64) == 4 + 5 + 3
    assert pool.request_units(65) == 5 + 5 + 3
    assert rule.requests(64) == 8
    assert rule.requests(160) == 100 // 18
    assert rule.range(160) == (50 // 18, 8)


def test_without_xlsxwriter_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    from kvplan.reports.workbook import render  # noqa: PLC0415

    monkeypatch.setitem(__import__("sys").modules, "xlsxwriter", None)
    with pytest.raises(UsageError, match="XlsxWriter"):
        render.xlsxwriter_module()
