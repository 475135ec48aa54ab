"""Means and percentiles, and the timeline's intervals."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvplan.planning.simulate.spread import spread_of, spread_over
from kvplan.planning.simulate.timeline import Timeline


@given(st.lists(st.integers(0, 20), min_size=1, max_size=60))
def test_percentiles_are_values_that_so_many_do_not_exceed(values: list[int]) -> None:
    spread = spread_of(values)
    assert spread is not None
    ordered = sorted(values)
    for share, found in ((0.5, spread.p50), (0.9, spread.p90), (0.99, spread.p99)):
        assert found == ordered[math.ceil(share * len(values) - 1e-9) - 1]
    assert spread.mean == pytest.approx(sum(values) / len(values))
    assert spread.max == ordered[-1]


def test_time_counts_not_cases() -> None:
    spread = spread_over({1.0: 98.0, 5.0: 2.0})
    assert spread is not None
    assert (spread.p95, spread.p99, spread.mean) == (1.0, 5.0, 1.08)
    assert spread_over({}) is None
    assert spread_of(()) is None


def test_intervals_double_when_there_are_too_many() -> None:
    timeline = Timeline()
    for second in range(1000):
        timeline.add(second, 1.0, used=second, kept=1, running=2, waiting=3)
    moments = timeline.moments()
    assert len(moments) == 250
    assert {moment.seconds for moment in moments} == {4.0}
    assert moments[0].used == (0 + 1 + 2 + 3) / 4
    assert moments[-1].used_max == 999
    assert {(moment.kept, moment.running, moment.waiting) for moment in moments} == {(1, 2, 3)}


def test_idle_time_counts_as_empty() -> None:
    timeline = Timeline(width=10.0)
    timeline.add(0.0, 5.0, used=8, kept=0, running=4, waiting=0)
    assert (timeline.moments()[0].used, timeline.moments()[0].running) == (4.0, 2.0)
