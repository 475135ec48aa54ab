"""What every readable format of a traffic plan shows: titled rows, and shares for people."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Section:
    """A title and its rows."""

    title: str
    rows: tuple[tuple[str, str], ...]


def percent(share: float) -> str:
    """A share for people.

    >>> percent(0.001), percent(0.25), percent(1e-9), percent(0)
    ('0.1 %', '25 %', 'under 0.001 %', '0 %')
    """
    least = 1e-5
    if 0 < share < least:
        return "under 0.001 %"
    return f"{share * 100:.4g} %"
