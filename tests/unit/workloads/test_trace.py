"""Rows of traces: what is read, and what is refused with its line."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvplan.errors import InputError
from kvplan.workloads.requests import ContentBlocks, Request
from kvplan.workloads.trace import Row, TraceReading


def rows(*values: tuple[Any, ...]) -> list[Row]:
    """Rows of arrival, prompt and output, from line 2 on."""
    return [(number, (*row, *(None,) * (6 - len(row)))) for number, row in enumerate(values, 2)]


def read(*values: tuple[Any, ...], unit_s: float | None = None) -> list[Request]:
    """The requests of such rows."""
    return list(TraceReading("trace.csv", unit_s).requests(rows(*values)))


def test_times_are_counted_from_the_first() -> None:
    dates = ("2023-11-16 18:17:03.9799600", "2023-11-16 18:17:04.0319600")
    found = read((dates[0], "4808", "10"), (dates[1], "3180", "8.0"))
    assert found == [Request(0.0, 4808, 10), Request(pytest.approx(0.052), 3180, 8)]


@pytest.mark.parametrize(
    ("first", "unit_s"),
    [(5, 1), (1_700_000_000, 1), (1.7e12, 1e-3), (1.7e15, 1e-6), (1.7e18, 1e-9)],
)
def test_digits_of_a_time_since_1970_say_its_unit(first: float, unit_s: float) -> None:
    found = read((first, 1, 1), (first + 2000 / unit_s, 1, 1))
    assert found[1].arrival_s == pytest.approx(2000)


def test_a_stated_unit_is_taken() -> None:
    assert read((0, 1, 1), (27_482, 1, 1), unit_s=1e-3)[1].arrival_s == pytest.approx(27.482)


def test_content_session_and_turn() -> None:
    reading = TraceReading("t", block_tokens=256)
    (found,) = reading.requests([(1, (None, 600, 5, [3, 4, 9], 17, 2))])
    assert found.blocks == ContentBlocks((3, 4, 9), 256)
    assert (found.session, found.turn, found.arrival_s) == ("17", 2, 0.0)


def test_rows_without_an_output_are_counted_as_failed() -> None:
    reading = TraceReading("t")
    found = list(reading.requests(rows((0, 5, 0), (1, 5, 2))))
    assert (len(found), reading.tally.requests, reading.tally.failed) == (1, 1, 1)
    assert reading.tally.timed


@pytest.mark.parametrize(
    ("bad", "sentence"),
    [
        ((1, None, 5), "The prompt is missing"),
        ((1, "", 5), "The prompt is missing"),
        ((1, 5, None), "The output is missing"),
        ((1, -3, 5), "The prompt is -3: negative"),
        ((1, "nan", 5), "no whole number"),
        ((1, float("nan"), 5), "no whole number"),
        ((1, "inf", 5), "no whole number"),
        ((1, 1.5, 5), "no whole number"),
        ((1, True, 5), "no whole number"),
        ((1, [1], 5), "no whole number"),
        ((1, 10**20, 5), "more than any request has"),
        ((1, 5, "1e400"), "no whole number"),
        (("nan", 5, 5), "no time"),
        (("soon", 5, 5), "no time of arrival"),
        ((None, 5, 5), "time of arrival is missing"),
        (("2023-11-16 18:17:03", 5, 5), "mixed"),
        ((-1, 5, 5), "before the one above"),
        ((1.7e9, 5, 5), "ten years"),
        ((1, 5, 5, "1,2"), "no list"),
        ((1, 5, 5, [1, "2"]), "no list"),
        ((1, 5, 5, None, None, "x"), "The turn is"),
    ],
)
def test_a_broken_row_is_refused_with_its_line(bad: tuple[Any, ...], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence) as caught:
        read((0, 5, 5), bad)
    assert caught.value.location == "trace.csv:3"
    assert caught.value.hint


_anything = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)


@given(st.lists(st.tuples(_anything, _anything, _anything, st.lists(_anything, max_size=3))))
def test_any_row_gives_a_request_or_an_input_error(values: list[tuple[Any, ...]]) -> None:
    try:
        found = read(*values)
    except InputError:
        return
    assert all(one.prompt_tokens >= 1 and one.output_tokens >= 1 for one in found)
    assert all(one.arrival_s >= 0 for one in found)
