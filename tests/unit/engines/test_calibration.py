"""Fitted memory: every range holds its value, every band says what it was fitted on."""

from __future__ import annotations

from dataclasses import fields
from itertools import pairwise

import pytest
from fixed_calibration import NEWEST, fix_calibration

from kvplan.engines.runtime import CUDA_CONTEXT_GIB, NCCL_GIB, Range
from kvplan.engines.vllm.calibration import (
    CONSTANTS,
    Interval,
    RuntimeBand,
    bands,
    nearest,
    widened,
)
from kvplan.units import GIB


def ranges(band: RuntimeBand) -> dict[str, Range]:
    values = {field.name: getattr(band, field.name) for field in fields(band)}
    return {name: value for name, value in values.items() if isinstance(value, Range)}


@pytest.mark.parametrize("band", bands(), ids=lambda band: f"{band.engine} {band.since}")
def test_a_range_holds_its_value(band: RuntimeBand) -> None:
    assert len(ranges(band)) == 12
    assert tuple(ranges(band)) == CONSTANTS
    for constant in (*ranges(band).values(), CUDA_CONTEXT_GIB, NCCL_GIB):
        assert 0 <= constant.low <= constant.value <= constant.high
    assert band.interval.low > 0
    assert band.interval.high > 0
    assert band.interval.n >= 1
    assert band.source.startswith("vLLM ")


@pytest.mark.parametrize(("version", "v0"), [((0, 6), True), ((0, 8), False), ((0, 33), False)])
def test_every_release_since_the_oldest_has_a_band(version: tuple[int, int], *, v0: bool) -> None:
    assert nearest(version, v0=v0).since <= version


def test_bands_of_an_engine_follow_each_other() -> None:
    new = [band for band in bands() if band.engine == "v1"]
    for earlier, later in pairwise(new):
        assert earlier.until < later.since


@pytest.mark.parametrize(
    ("version", "v0", "since"),
    [
        ((0, 6), True, (0, 6)),
        ((0, 10, 2), True, (0, 6)),
        ((0, 8), False, (0, 8)),
        ((0, 16, 9), False, (0, 8)),
        ((0, 17), False, (0, 17)),
        ((0, 19, 1), False, (0, 17)),
        ((0, 20), False, (0, 20)),
        ((0, 33, 0), False, (0, 20)),
        ((1, 0), False, (0, 20)),
    ],
)
def test_a_release_falls_into_the_band_that_began_last(
    version: tuple[int, ...],
    *,
    v0: bool,
    since: tuple[int, int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fix_calibration(monkeypatch)
    assert nearest(version, v0=v0).since == since


def test_a_wider_band_keeps_its_values() -> None:
    band = NEWEST
    assert widened(band, 1) is band
    wider = widened(band, 2)
    assert wider.interval.low == 2 * band.interval.low
    assert wider.interval.high == 2 * band.interval.high
    assert "widened by 2" in wider.source
    for name, constant in ranges(band).items():
        wide = ranges(wider)[name]
        assert wide.value == constant.value
        assert wide.high == constant.value + 2 * (constant.high - constant.value)
        assert wide.low == max(0, constant.value - 2 * (constant.value - constant.low))


def test_an_interval_is_a_share_of_fitted_memory_and_half_a_gib() -> None:
    interval = Interval(low=0.5, high=0.25, n=9)
    assert interval.ends(3 * GIB) == (round(1.75 * GIB), round(0.875 * GIB))


def test_there_is_never_more_than_all_that_is_fitted() -> None:
    assert Interval(low=0.5, high=2, n=9).ends(GIB)[1] == GIB
    assert Interval(low=0.5, high=2, n=9).ends(0) == (GIB // 4, 0)


@pytest.mark.parametrize("band", bands(), ids=lambda band: band.releases)
def test_each_band_states_what_its_own_starts_had(band: RuntimeBand) -> None:
    found = band.measured
    assert set(found.sizes) == {"tp", "pp", "vocabulary", "tokens", "requests"}
    assert all(0 < low <= high for low, high in found.sizes.values())
    starts = int(band.source.partition(" starts")[0].split()[-1])
    assert sum(found.devices.values()) == starts
    assert all(1 <= count <= starts for count in found.kinds.values())


def test_the_bands_do_not_have_the_same() -> None:
    """What one saw says nothing of another: the thin one had no Hopper."""
    thin, other = nearest((0, 26), v0=False).measured, nearest((0, 19), v0=False).measured
    assert "9.0" not in thin.devices
    assert other.devices["9.0"] > 20
