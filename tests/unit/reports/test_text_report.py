"""The text report: whole numbers, no line too wide, no colour needed, nothing injected."""

from __future__ import annotations

import re

import pytest
from rich.cells import cell_len
from sample_plans import SAMPLES, does_not_fit, fits, refused, too_big

from kvplan.plan import Advice, Gain, Plan, Reason
from kvplan.reports.capacity_rows import capacity_scopes
from kvplan.reports.render import render
from kvplan.units import format_bytes, format_count

HOSTILE = "org/\x1b[31m[bold red]evil[/bold red]\u202e" + "x" * 150


def _hostile() -> Plan:
    plan = does_not_fit()
    long_line = plan.ledger[0].model_copy(
        update={"name": "weights." + "y" * 120, "source": HOSTILE}
    )
    return plan.model_copy(
        update={
            "model": plan.model.model_copy(update={"id": HOSTILE, "source": HOSTILE}),
            "gpu": plan.gpu.model_copy(update={"id": HOSTILE}),
            "reasons": (Reason(code="x", message=HOSTILE, hint=HOSTILE),),
            "ledger": (long_line, *plan.ledger[1:]),
            "advice": (
                Advice(
                    action=HOSTILE,
                    change={"engine_options": {"speculative_config": {"model": HOSTILE}}},
                    gain=Gain(requests=10**9, tokens=10**15),
                    cost=HOSTILE,
                    note=HOSTILE,
                ),
            ),
        }
    )


ALL = {**SAMPLES, "hostile": _hostile}


@pytest.mark.parametrize("width", [60, 70, 80, 100, 140])
@pytest.mark.parametrize("name", sorted(ALL))
def test_no_line_is_wider_than_asked_and_nothing_is_cut(name: str, width: int) -> None:
    text = render(ALL[name](), "text", explain=True, width=width)
    assert max(cell_len(line) for line in text.splitlines()) <= width
    assert "…" not in text


@pytest.mark.parametrize("width", [60, 80, 140])
@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_every_number_is_there_in_full(name: str, width: int) -> None:
    plan = SAMPLES[name]()
    text = render(plan, "text", width=width)
    for line in plan.ledger:
        assert format_bytes(line.bytes) in text
    if plan.capacity and plan.kv:
        for count in (plan.capacity.blocks, plan.capacity.tokens, plan.kv.bytes_per_request):
            assert format_count(count) in text
    for advice in plan.advice:
        assert f"+{format_count(advice.gain.tokens)}" in text


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_the_verdict_is_the_first_line(name: str) -> None:
    text = render(SAMPLES[name](), "text", width=140)
    assert text.startswith(("Fits: ", "Does not fit: ", "Refused: "))


def test_words_of_a_long_cost_are_all_there() -> None:
    plan = does_not_fit()
    words = render(plan, "text", width=80).split()
    for advice in plan.advice:
        assert set(advice.cost.split()) <= set(words)


def test_a_flag_with_its_value_stays_on_one_line() -> None:
    text = render(does_not_fit(), "text", width=80)
    assert "-o gpu_memory_utilization=0.95" in text


@pytest.mark.parametrize("name", sorted(ALL))
def test_without_colour_there_is_no_escape(name: str) -> None:
    text = render(ALL[name](), "text", explain=True, width=100)
    assert all(character.isprintable() or character == "\n" for character in text)


def test_colour_changes_nothing_but_colour() -> None:
    plain = render(does_not_fit(), "text", width=100)
    colored = render(does_not_fit(), "text", width=100, color=True)
    assert "\x1b[" in colored
    bare = re.sub(r"\x1b\[[0-9;]*m", "", colored)
    assert [line.rstrip() for line in bare.splitlines()] == plain.splitlines()


def test_with_colour_a_hostile_name_still_sends_no_escape_of_its_own() -> None:
    text = render(_hostile(), "text", width=100, color=True)
    bare = re.sub(r"\x1b\[[0-9;]*m", "", text)
    assert bare.replace("\n", "").isprintable()
    assert "\\x1b[31m[bold red]evil" in bare


@pytest.mark.parametrize("name", sorted(ALL))
def test_in_ascii_the_layout_is_the_same(name: str) -> None:
    text = render(ALL[name](), "text", width=80, ascii_only=True)
    assert text.isascii()
    assert max(len(line) for line in text.splitlines()) <= 80


def test_the_parts_of_the_bar_have_marks_of_their_own() -> None:
    for ascii_only in (False, True):
        text = render(does_not_fit(), "text", width=80, ascii_only=ascii_only)
        lines = text.splitlines()
        start = next(index for index, line in enumerate(lines) if line.startswith("Memory of one"))
        bar = lines[start + 1]
        marks = [line[0] for line in lines[start + 3 : start + 9]]
        assert len(set(marks)) == 6
        assert all(mark in bar for mark in marks)


def test_explain_fills_every_formula_in() -> None:
    plan = fits()
    squeezed = " ".join(render(plan, "text", explain=True, width=140).split())
    for line in plan.ledger:
        assert " ".join(line.formula.split()) in squeezed
        assert f"{line.bytes:_}" in squeezed


def test_subtotals_head_their_lines() -> None:
    text = render(fits(), "text", width=100)
    assert re.search(r"^  weights +32\.86 GiB +41\.5 %", text, re.MULTILINE)
    assert re.search(r"^    attention +5\.62 GiB", text, re.MULTILINE)


def test_a_hint_stands_under_the_headline_that_took_its_sentence() -> None:
    lines = render(refused(), "text", width=140).splitlines()
    assert lines[0].startswith("Refused: ")
    assert lines[1].startswith("hint: ")
    assert "Notes" not in lines
    assert sum("hint: " in line for line in lines) == 1


@pytest.mark.parametrize("width", [60, 65, 80])
def test_the_bar_is_one_row_of_the_width(width: int) -> None:
    rows = [
        line
        for line in render(does_not_fit(), "text", width=width).splitlines()
        if line.startswith("┃")
    ]
    assert [cell_len(row) for row in rows] == [width, width]


def test_the_range_of_the_cache_is_that_of_its_line() -> None:
    plan = fits()
    assert plan.kv is not None
    other = plan.kv.model_copy(update={"budget_low": -(2**30), "budget_high": 2**40})
    text = render(plan.model_copy(update={"kv": other}), "text", width=100)
    row = next(line for line in text.splitlines() if "KV cache allocated" in line)
    assert "1,024.00 GiB" not in row
    assert "-1.00" not in row


def test_a_budget_below_nothing_is_what_is_missing() -> None:
    plan = too_big()
    assert plan.kv is not None
    kv = plan.kv.model_copy(update={"budget_bytes": -3 * 2**30, "allocated_bytes": 0})
    first = capacity_scopes(plan.model_copy(update={"kv": kv}))[0].figures[0]
    assert (first.value, first.remark) == ("0 B", "3.00 GiB are missing before it")
