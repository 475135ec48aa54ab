"""What the driver says of the GPUs in use; nothing where it can't be asked."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from kvplan.errors import NoDeviceError

if TYPE_CHECKING:
    from kvplan.hardware import DetectedGpu


def detected() -> tuple[DetectedGpu, ...]:
    """The GPUs that NVML lists; none where there is no NVML (ROCm, no driver)."""
    from kvplan.sources.nvml import detect

    try:
        return detect()
    except NoDeviceError:
        return ()


def card_of(cards: tuple[DetectedGpu, ...], index: int) -> DetectedGpu | None:
    """The card that CUDA numbers ``index``, as far as that can be told.

    CUDA_VISIBLE_DEVICES may hold numbers or the start of UUIDs. Without it the numbers agree only
    on machines with one kind of card, unless CUDA_DEVICE_ORDER=PCI_BUS_ID.
    """
    setting = os.environ.get("CUDA_VISIBLE_DEVICES")
    if setting is None:
        return cards[index] if index < len(cards) else None
    names = [name.strip() for name in setting.split(",")]
    if index >= len(names):
        return None
    name = names[index]
    return next(
        (
            card
            for card in cards
            if name and (str(card.index) == name or card.uuid.startswith(name))
        ),
        None,
    )


def used_bytes(index: int) -> int | None:
    """Bytes in use on that card now, or None where nobody tells."""
    card = card_of(detected(), index)
    return None if card is None else card.used_bytes
