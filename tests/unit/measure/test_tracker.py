"""The tracker counts storages, each once, as long as they live."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402 - torch may be missing

from kvplan.measure.tracker import Tracker  # noqa: E402


def test_a_view_keeps_its_storage() -> None:
    with Tracker() as tracker:
        whole = torch.empty(1000, dtype=torch.float32)
        part = whole[:10]
        assert tracker.live == 4000
        del whole
        assert tracker.live == 4000
        del part
        assert tracker.live == 0
        assert tracker.peak == 4000


def test_in_place_takes_nothing() -> None:
    with Tracker() as tracker:
        values = torch.empty(100, dtype=torch.bfloat16)
        values.normal_().mul_(2)
        assert tracker.live == tracker.peak == 200


def test_the_peak_starts_anew() -> None:
    with Tracker() as tracker:
        kept = torch.empty(10, dtype=torch.int8)
        del_me = torch.empty(90, dtype=torch.int8)
        del del_me
        tracker.reset_peak()
        assert tracker.peak == 10
        assert (kept + kept).nbytes + 10 == tracker.peak


def test_without_memory() -> None:
    with FakeTensorMode(), Tracker() as tracker:
        huge = torch.empty(2**50, dtype=torch.int8)
        assert tracker.live == 2**50
        del huge
        assert tracker.live == 0
