"""What the driver says of the GPUs in use; nothing where it can't be asked."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from kvplan.errors import NoDeviceError
from kvplan.units import GIB, MIB

if TYPE_CHECKING:
    from kvplan.hardware import DetectedGpu, GpuSpec

# An idle card has some MiB in use.
_UNUSED = 64 * MIB


def detected() -> tuple[DetectedGpu, ...]:
    """The GPUs that NVML lists; none where there is no NVML (ROCm, no driver)."""
    from kvplan.sources.nvml import detect

    try:
        return detect()
    except NoDeviceError:
        return ()


def card_of(cards: tuple[DetectedGpu, ...], index: int) -> DetectedGpu | None:
    """The card that CUDA numbers ``index``, as far as that can be told.

    CUDA_VISIBLE_DEVICES may hold numbers or the start of UUIDs. CUDA counts the fastest first and
    NVML by the bus: of unlike cards a number says nothing, unless CUDA_DEVICE_ORDER=PCI_BUS_ID.
    """
    setting = os.environ.get("CUDA_VISIBLE_DEVICES")
    alike = len({card.name for card in cards}) < 2
    counted = alike or os.environ.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID"
    names = [str(n) for n in range(len(cards))] if setting is None else setting.split(",")
    name = names[index].strip() if index < len(names) else ""
    return next((card for card in cards if _is_called(card, name, counted=counted)), None)


def _is_called(card: DetectedGpu, name: str, *, counted: bool) -> bool:
    if name.isdecimal():
        return counted and card.index == int(name)
    return bool(name) and card.uuid.startswith(name)


def is_shared(cards: tuple[DetectedGpu, ...], index: int) -> bool | None:
    """Whether other programs use the card, or None where nobody tells.

    In a container NVML may not list the programs of others, but it counts their memory. Where
    it can't be told which card is meant, one that is used will do.
    """
    if not cards:
        return None
    card = card_of(cards, index)
    meant = cards if card is None else (card,)
    return any(each.processes or (each.used_by_others or 0) > _UNUSED for each in meant)


def gpu_to_plan_for(index: int) -> GpuSpec | str:
    """The GPU that is measured: as NVML knows it, else by the name and memory that torch gives.

    Raises:
        NoDeviceError: there is none.
    """
    from kvplan.sources import machine

    cards = detected()
    card = card_of(cards, index)
    if card is not None and not card.mig_enabled:
        return machine.auto_spec((card,), None)
    if cards and card is not None:
        return "auto"
    from kvplan.measure.meters import describe

    name, total = describe(index)
    return machine.spec_id(name, total) or f"custom:{total / GIB:.2f}GiB"


def used_bytes(index: int) -> int | None:
    """Bytes in use on that card now, or None where nobody tells."""
    card = card_of(detected(), index)
    return None if card is None else card.used_bytes
