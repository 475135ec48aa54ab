"""Work that is given up when its time is over."""

from __future__ import annotations

import threading
import time
from functools import partial

import pytest

from kvplan.sources.deadline import all_within


def test_results_in_order() -> None:
    """Later jobs may be done earlier."""
    jobs = [partial(lambda n: time.sleep(0.05 / (n + 1)) or n, n) for n in range(10)]
    assert all_within(jobs, seconds=10, workers=4) == list(range(10))
    assert all_within([], seconds=10) == []


def test_time_is_over() -> None:
    release = threading.Event()
    begin = time.monotonic()
    with pytest.raises(TimeoutError):
        all_within([lambda: 1, release.wait], seconds=0.1)
    assert time.monotonic() - begin < 5
    release.set()


def test_no_time_at_all() -> None:
    with pytest.raises(TimeoutError):
        all_within([threading.Event().wait], seconds=-1)


def test_first_error_and_no_more_work() -> None:
    """What one job raises is raised; jobs not begun never are."""
    begun = []

    def job(number: int) -> None:
        begun.append(number)
        time.sleep(0.01)
        raise ValueError(str(number))

    with pytest.raises(ValueError, match="0"):
        all_within([partial(job, number) for number in range(1000)], seconds=10)
    so_far = len(begun)
    time.sleep(0.2)
    assert len(begun) <= so_far + 1
