"""Turns of conversations come after the answers in front of them."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st
from simulated import pool, run, workloads

from kvplan.planning.simulate.arriving import Arriving
from kvplan.planning.simulate.service import Linear
from kvplan.workloads.requests import Request


def turn(number: int, arrival_s: float, pause_s: float | None = 5.0, session: str = "a") -> Request:
    return Request(arrival_s, 10 + 20 * number, 10, None, session, number, pause_s=pause_s)


def test_a_turn_comes_a_pause_after_the_answer() -> None:
    arriving = Arriving(iter([turn(0, 0.0), turn(1, 5.0)]))
    (first,) = arriving.until(100.0)
    assert arriving.next_s == math.inf
    arriving.answered(first, 40.0)
    assert arriving.next_s == 45.0
    (second,) = arriving.until(45.0)
    assert (second.turn, second.arrival_s) == (1, 45.0)


def test_it_never_comes_before_its_own_time() -> None:
    arriving = Arriving(iter([turn(0, 0.0), turn(1, 90.0)]))
    (first,) = arriving.until(0.0)
    arriving.answered(first, 2.0)
    assert arriving.next_s == 90.0
    assert [one.arrival_s for one in arriving.until(90.0)] == [90.0]


def test_several_turns_wait_in_order() -> None:
    arriving = Arriving(iter([turn(0, 0.0), turn(1, 5.0), turn(2, 10.0)]))
    (first,) = arriving.until(50.0)
    arriving.answered(first, 50.0)
    (second,) = arriving.until(60.0)
    assert second.turn == 1
    arriving.answered(second, 70.0)
    assert [(one.turn, one.arrival_s) for one in arriving.until(99.0)] == [(2, 75.0)]


def test_turns_of_a_trace_come_when_it_says() -> None:
    rows = [turn(0, 0.0, None), turn(1, 5.0, None)]
    assert list(Arriving(iter(rows)).until(5.0)) == rows


@given(workloads())
def test_what_waits_for_nothing_comes_as_it_is(requests: list[Request]) -> None:
    assert list(Arriving(iter(requests)).until(math.inf if not requests else 1e9)) == requests


@given(st.integers(1, 6), st.integers(1, 40), st.floats(0.5, 20))
def test_a_conversation_alone_takes_its_answers_and_its_pauses(
    turns: int, answer: int, pause_s: float
) -> None:
    talk = [
        Request(0.0 + pause_s * i, 16, answer, None, "a", i, pause_s=pause_s if i else 0.0)
        for i in range(turns)
    ]
    found = run(talk, pool(100, batch_tokens=16), Linear(step_s=1.0))
    # A step for the prompt, which also gives the first token, and one for each other token.
    assert found.simulated_s == (turns - 1) * pause_s + turns * answer or math.isclose(
        found.simulated_s, (turns - 1) * pause_s + turns * answer
    )
    assert found.running is not None
    assert found.running.max == 1


def test_a_refused_turn_lets_the_next_one_come() -> None:
    talk = [turn(0, 0.0), Request(0.0, 9_999, 500, None, "a", 1, pause_s=5.0), turn(2, 0.0)]
    found = run(talk, pool(100))
    assert (found.requests.finished, found.requests.refused) == (2, 1)
