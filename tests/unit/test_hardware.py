"""Devices: what torch sees of them, and where the shares for unknown ones come from."""

from __future__ import annotations

from statistics import median
from typing import Any

import pytest
from pydantic import ValidationError

from kvplan import hardware
from kvplan.hardware import Fact, GpuSpec, Shares, device_memory
from kvplan.sources.gpus import list_gpus
from kvplan.units import GIB, MIB


def gpu(**facts: Any) -> GpuSpec:
    given = {"vendor": "nvidia", **facts}
    return GpuSpec(id="X-1GB", name="X", architecture="x", **given)


def fact(value: float, *, low: float | None = None, high: float | None = None) -> Fact:
    return Fact(value=value, low=low, high=high, source="a log")


def test_torch_s_own_figure_comes_first() -> None:
    memory = device_memory(
        gpu(torch_total_gib=fact(79.19, low=79.1, high=79.44), driver_total_mib=fact(81559))
    )
    assert memory.total == round(79.19 * GIB)
    assert (memory.low, memory.high) == (round(79.1 * GIB), round(79.44 * GIB))
    assert (memory.source, memory.confidence) == ("a log", "derived")


def test_a_figure_without_a_range_is_its_own_range() -> None:
    memory = device_memory(gpu(torch_total_gib=fact(22.04)))
    assert memory.low == memory.total == memory.high


@pytest.mark.parametrize(
    ("mib", "shares"),
    [
        (24_576, hardware.TORCH_OF_DRIVER),
        (65_535, hardware.TORCH_OF_DRIVER),
        (65_536, hardware.TORCH_OF_DRIVER_LARGE),
        (275_040, hardware.TORCH_OF_DRIVER_LARGE),
    ],
)
def test_without_it_a_share_of_what_the_driver_prints(mib: int, shares: Shares) -> None:
    memory = device_memory(gpu(driver_total_mib=fact(mib), nominal_memory_gb=fact(999)))
    assert [memory.low, memory.total, memory.high] == [round(mib * MIB * one) for one in shares]
    assert memory.confidence == "assumed"
    assert "a log" in memory.source
    assert "not known" in memory.source


def test_the_driver_s_own_range_widens_it() -> None:
    memory = device_memory(gpu(driver_total_mib=fact(46_068, high=49_140)))
    assert memory.high == round(49_140 * MIB * hardware.TORCH_OF_DRIVER[2])


def test_without_both_a_share_of_the_nominal_memory() -> None:
    memory = device_memory(gpu(nominal_memory_gb=fact(128)))
    shared = device_memory(gpu(nominal_memory_gb=fact(128), shared_memory=True))
    assert memory.total == round(128 * GIB * hardware.TORCH_OF_NOMINAL[1])
    assert shared.total == round(128 * GIB * hardware.TORCH_OF_SHARED[1]) < memory.total


@pytest.mark.parametrize(
    ("gb", "share"), [(16, 0.6666), (32, 0.6666), (36, 0.75), (64, 0.75), (128, 0.75)]
)
def test_metal_grants_a_share_of_a_mac_s_memory(gb: int, share: float) -> None:
    memory = device_memory(gpu(vendor="apple", nominal_memory_gb=fact(gb), shared_memory=True))
    assert memory.total == memory.low == round(gb * GIB * share)
    assert memory.high == round(gb * GIB * 0.78)


def test_metal_s_own_figure_is_taken_as_it_is() -> None:
    memory = device_memory(gpu(vendor="apple", driver_total_mib=fact(73_728)))
    assert memory.total == 72 * GIB


def test_a_device_without_memory_is_refused() -> None:
    with pytest.raises(ValidationError, match="no memory is stated"):
        gpu()


@pytest.mark.parametrize("facts", [{"low": 2.0}, {"high": 0.5}, {"low": 0.0}])
def test_a_fact_s_range_contains_it(facts: dict[str, float]) -> None:
    with pytest.raises(ValidationError):
        fact(1.0, **facts)


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
def test_a_fact_is_positive_and_finite(value: float) -> None:
    with pytest.raises(ValidationError):
        fact(value)


@pytest.mark.parametrize(
    ("capability", "sm"), [("9.0", (9, 0)), ("12.1", (12, 1)), ("10.3", (10, 3)), (None, None)]
)
def test_compute_capability_as_numbers(capability: str | None, sm: tuple[int, int] | None) -> None:
    assert gpu(nominal_memory_gb=fact(1), compute_capability=capability).sm == sm


def shares_of(pairs: list[tuple[float, float]]) -> tuple[int, Shares]:
    shares = [seen / of for seen, of in pairs]
    return len(shares), (min(shares), median(shares), max(shares))


def driver_pairs(*, large: bool) -> list[tuple[float, float]]:
    return [
        (one.torch_total_gib.value * 1024, one.driver_total_mib.value)
        for one in list_gpus()
        if one.torch_total_gib and one.driver_total_mib
        if (one.driver_total_mib.value >= hardware.LARGE_MIB) == large
    ]


def nominal_pairs(*, shared: bool) -> list[tuple[float, float]]:
    return [
        (one.torch_total_gib.value, one.nominal_memory_gb.value)
        for one in list_gpus()
        if one.torch_total_gib and one.nominal_memory_gb and one.shared_memory == shared
    ]


@pytest.mark.parametrize(
    ("pairs", "count", "shares"),
    [
        (driver_pairs(large=False), 20, hardware.TORCH_OF_DRIVER),
        (driver_pairs(large=True), 10, hardware.TORCH_OF_DRIVER_LARGE),
        (nominal_pairs(shared=False), 33, hardware.TORCH_OF_NOMINAL),
    ],
)
def test_shares_are_those_of_the_bundled_cards(
    pairs: list[tuple[float, float]], count: int, shares: Shares
) -> None:
    """If a card is added, correct the constants and the counts in their comment."""
    found, (low, middle, high) = shares_of(pairs)
    assert found == count
    assert shares[0] <= low < shares[0] + 0.001
    assert shares[1] == pytest.approx(middle, abs=0.001)
    assert shares[2] - 0.001 < high <= shares[2]


def test_the_share_of_shared_memory_is_the_gb10_s() -> None:
    ((seen, nominal),) = nominal_pairs(shared=True)
    assert seen / nominal == pytest.approx(hardware.TORCH_OF_SHARED[1], abs=0.001)
