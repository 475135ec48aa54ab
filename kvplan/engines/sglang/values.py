"""Values of SGLang's options: one checked reader a type. Each error names the option."""

from __future__ import annotations

from typing import Any

from kvplan.errors import UsageError, nearest, shown

_MOST = 2**31
_MOST_RATIO = 1e6


def _integer(name: str, value: Any, least: int, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise UsageError(
            f"{name} is a whole number from {least:,} to {most:,}, not {shown(value)}.",
            hint=f"Write -o {name}=64, or leave it out for SGLang's own default.",
        )
    return value


def count(name: str, value: Any) -> int:
    """A whole number of at least 1."""
    return _integer(name, value, 1, _MOST)


def chunk(name: str, value: Any) -> int:
    """Tokens of a prefill chunk, or -1 for no chunks."""
    return value if value == -1 and isinstance(value, int) else count(name, value)


def flag(name: str, value: Any) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise UsageError(
            f"{name} is true or false, not {shown(value)}.", hint=f"Write -o {name}=true."
        )
    return value


def share(name: str, value: Any) -> float:
    """A share, above 0 and at most 1."""
    return _number(name, value, 1.0)


def ratio(name: str, value: Any) -> float:
    """A ratio above 0."""
    return _number(name, value, _MOST_RATIO)


def _number(name: str, value: Any, most: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= most:
        raise UsageError(
            f"{name} is a number above 0 and at most {most:g}, not {shown(value)}.",
            hint=f"Write -o {name}=0.85.",
        )
    return float(value)


def word(name: str, value: Any, known: tuple[str, ...] = ()) -> str:
    """A short text, one of ``known`` if there are any (upper and lower case alike)."""
    one_of = f"Use one of {', '.join(known)}." if known else "Write it as SGLang does."
    if not isinstance(value, str) or not 0 < len(value) <= 4096:
        raise UsageError(f"{name} is a word, not {shown(value)}.", hint=one_of)
    by_folded = {each.casefold(): each for each in known}
    if known and value.casefold() not in by_folded:
        raise UsageError(f"{name} is not {shown(value)}.", hint=nearest(value, known) or one_of)
    return by_folded[value.casefold()] if known else value
