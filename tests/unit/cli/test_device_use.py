"""Which card is meant, by what CUDA is told to see."""

from __future__ import annotations

import pytest

from kvplan.cli import device_use
from kvplan.errors import NoDeviceError
from kvplan.hardware import DetectedGpu

CARDS = tuple(
    DetectedGpu(index=i, name="card", uuid=f"GPU-{i}aa", driver_version="1", used_bytes=i)
    for i in range(3)
)


@pytest.mark.parametrize(
    ("setting", "index", "expected"),
    [
        (None, 1, 1),
        (None, 3, None),
        ("2,0", 0, 2),
        ("2,0", 1, 0),
        ("2,0", 2, None),
        ("GPU-1", 0, 1),
        ("", 0, None),
        ("7", 0, None),
    ],
)
def test_card_of(
    setting: str | None, index: int, expected: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if setting is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", setting)
    monkeypatch.delenv("CUDA_DEVICE_ORDER", raising=False)
    card = device_use.card_of(CARDS, index)
    assert (None if card is None else card.index) == expected


def test_no_driver_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing() -> tuple[DetectedGpu, ...]:
        raise NoDeviceError("none")

    monkeypatch.setattr("kvplan.sources.nvml.detect", failing)
    assert device_use.detected() == ()
    assert device_use.used_bytes(0) is None


UNLIKE = (CARDS[0], CARDS[1].model_copy(update={"name": "other card", "used_by_others": 2**30}))


def test_a_number_says_nothing_of_unlike_cards(monkeypatch: pytest.MonkeyPatch) -> None:
    """CUDA counts the fastest first, NVML by the bus."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.delenv("CUDA_DEVICE_ORDER", raising=False)
    assert device_use.card_of(UNLIKE, 1) is None
    monkeypatch.setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
    assert device_use.card_of(UNLIKE, 1) == UNLIKE[1]


def test_a_uuid_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-1aa")
    assert device_use.card_of(UNLIKE, 0) == UNLIKE[1]


@pytest.mark.parametrize(
    ("change", "shared"),
    [
        ({}, False),
        ({"processes": 0, "used_by_others": 4 * 2**20}, False),
        ({"processes": 1}, True),
        # As NVML tells it in a container: nobody is listed, and memory is used.
        ({"processes": 0, "used_by_others": 2**30}, True),
    ],
)
def test_who_shares_a_card(
    change: dict[str, int], *, shared: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    card = CARDS[0].model_copy(update=change)
    assert device_use.is_shared((card,), 0) is shared


def test_who_shares_a_card_that_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.delenv("CUDA_DEVICE_ORDER", raising=False)
    assert device_use.is_shared((), 0) is None
    assert device_use.is_shared(UNLIKE, 0) is True


def test_the_gpu_that_is_measured_is_planned_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    card = CARDS[0].model_copy(
        update={"name": "NVIDIA L4", "total_bytes": 23034 * 2**20, "spec_id": "L4-24GB"}
    )
    monkeypatch.setattr(device_use, "detected", lambda: (card,))
    found = device_use.gpu_to_plan_for(0)
    assert not isinstance(found, str)
    assert found.id == "L4-24GB"


@pytest.mark.parametrize(
    ("name", "total", "expected"),
    [
        ("AMD Instinct MI300X", int(191.45 * 2**30), "MI300X-192GB"),
        ("AMD Z9000", 40 * 2**30, "custom:40.00GiB"),
    ],
)
def test_without_nvml_torch_names_it(
    name: str, total: int, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    meters = pytest.importorskip("kvplan.measure.meters")
    monkeypatch.setattr(device_use, "detected", tuple)
    monkeypatch.setattr(meters, "describe", lambda _: (name, total))
    assert device_use.gpu_to_plan_for(0) == expected
