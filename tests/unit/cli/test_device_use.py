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
    card = device_use.card_of(CARDS, index)
    assert (None if card is None else card.index) == expected


def test_no_driver_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing() -> tuple[DetectedGpu, ...]:
        raise NoDeviceError("none")

    monkeypatch.setattr("kvplan.sources.nvml.detect", failing)
    assert device_use.detected() == ()
    assert device_use.used_bytes(0) is None
