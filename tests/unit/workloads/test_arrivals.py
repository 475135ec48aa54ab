"""Streams of arrivals have the rate, the spread and the day that they were given."""

from __future__ import annotations

import math
from itertools import islice, pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvplan.errors import UsageError
from kvplan.workloads.arrivals import EVERY_HOUR_ALIKE, Arrivals, daily_profile, peaked


@pytest.mark.parametrize("spread", [0.0, 0.5, 1.0, 3.0])
def test_times_have_the_rate_and_the_spread(spread: float) -> None:
    times = list(islice(Arrivals(5.0, spread).times(Random(1)), 40_000))  # noqa: S311
    waits = [after - before for before, after in pairwise(times)]
    mean = math.fsum(waits) / len(waits)
    deviation = math.sqrt(math.fsum((wait - mean) ** 2 for wait in waits) / len(waits))
    assert mean == pytest.approx(0.2, rel=0.05)
    assert deviation / mean == pytest.approx(spread, rel=0.05, abs=1e-9)


def test_requests_follow_the_day() -> None:
    arrivals = Arrivals(1.0, profile=peaked(2.5))
    counts = [0] * 24
    for time_s in arrivals.times(Random(3)):  # noqa: S311
        if time_s >= 24 * 3600:
            break
        counts[int(time_s // 3600)] += 1
    expected = [3600 * factor for factor in arrivals.profile.hours]
    # Chi-squared over 24 hours: beyond 60 is once in ten thousand.
    assert math.fsum((c - e) ** 2 / e for c, e in zip(counts, expected, strict=True)) < 60


@given(st.floats(1, 12))
def test_a_peak_is_as_high_as_asked_and_the_mean_stays(factor: float) -> None:
    profile = peaked(factor)
    assert profile.peak == pytest.approx(factor, rel=1e-6)
    assert math.fsum(profile.hours) == pytest.approx(24)
    assert profile.hours[12] == profile.peak
    assert min(profile.hours) > 0


def test_a_day_without_a_peak_is_flat() -> None:
    assert peaked(1).hours == pytest.approx(EVERY_HOUR_ALIKE.hours)


@pytest.mark.parametrize("weights", [(), (1.0,) * 23, (0.0,) * 24, (-1.0,) + (1.0,) * 23])
def test_what_is_no_day(weights: tuple[float, ...]) -> None:
    with pytest.raises(UsageError):
        daily_profile(weights)


@pytest.mark.parametrize(("rate", "spread"), [(0, 1), (-1, 1), (math.inf, 1), (1, -1)])
def test_what_is_no_stream(rate: float, spread: float) -> None:
    with pytest.raises(UsageError):
        Arrivals(rate, spread)
