"""Values of options: one checked reader a type. Each error names the option."""

from __future__ import annotations

from typing import Any

from kvplan.errors import UsageError, nearest, shown

MOST = 2**31


def integer(name: str, value: Any, least: int, most: int = MOST) -> int:
    """A whole number in a range."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise UsageError(
            f"{name} is a whole number from {least:,} to {most:,}, not {shown(value)}.",
            hint=f"Write -o {name}={max(least, 4)}, or leave it out.",
        )
    return value


def count(name: str, value: Any) -> int:
    """A whole number of at least 1."""
    return integer(name, value, 1)


def amount(name: str, value: Any) -> int:
    """A whole number of at least 0."""
    return integer(name, value, 0)


def word(name: str, value: Any, known: tuple[str, ...]) -> str:
    """One of ``known``, upper and lower case alike."""
    by_folded = {each.casefold(): each for each in known}
    if not isinstance(value, str) or value.casefold() not in by_folded:
        close = nearest(value, known) if isinstance(value, str) else None
        raise UsageError(
            f"{name} is not {shown(value)}.", hint=close or f"Use one of {', '.join(known)}."
        )
    return by_folded[value.casefold()]
