"""Values of TensorRT-LLM's options: one checked reader a type. Each error names the option."""

from __future__ import annotations

from typing import Any

from kvplan.errors import UsageError, nearest, shown
from kvplan.units import MAX_BYTES, parse_bytes

_MOST = 2**31


def _integer(name: str, value: Any, least: int, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise UsageError(
            f"{name} is a whole number from {least:,} to {most:,}, not {shown(value)}.",
            hint=f"Write -o {name}=64, or leave it out for TensorRT-LLM's own default.",
        )
    return value


def count(name: str, value: Any) -> int:
    """A whole number of at least 1."""
    return _integer(name, value, 1, _MOST)


def power(name: str, value: Any) -> int:
    """A power of two."""
    number = count(name, value)
    if number & (number - 1):
        raise UsageError(f"{name} is a power of two, not {number:,}.", hint=f"Write -o {name}=32.")
    return number


def size(name: str, value: Any) -> int:
    """An amount of memory in bytes, or as people write it."""
    return _integer(name, parse_bytes(value) if isinstance(value, str) else value, 0, MAX_BYTES)


def flag(name: str, value: Any) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise UsageError(
            f"{name} is true or false, not {shown(value)}.", hint=f"Write -o {name}=true."
        )
    return value


def share(name: str, value: Any) -> float:
    """A share above 0 and below 1, as the engine asks for."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1:
        raise UsageError(
            f"{name} is a share of what is left, above 0 and below 1, not {shown(value)}.",
            hint=f"Write -o {name}=0.9.",
        )
    return float(value)


def counts(name: str, value: Any) -> tuple[int, ...]:
    """A list of whole numbers; one alone, or several with commas, will do."""
    parts: list[Any] = [value]
    if isinstance(value, str):
        parts = [_digits(part.strip()) for part in value.split(",")]
    elif isinstance(value, list | tuple):
        parts = list(value)
    if not parts:
        raise UsageError(f"{name} is an empty list.", hint=f"Write -o {name}=512,32768.")
    return tuple(count(name, part) for part in parts)


def _digits(text: str) -> Any:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else text


def word(name: str, value: Any, known: tuple[str, ...]) -> str:
    """One of ``known``."""
    if not isinstance(value, str) or value not in known:
        hint = nearest(value, known) if isinstance(value, str) else None
        raise UsageError(
            f"{name} is not {shown(value)}.", hint=hint or f"Use one of {', '.join(known)}."
        )
    return value
