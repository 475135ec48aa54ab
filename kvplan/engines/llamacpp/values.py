"""Values of llama.cpp's options: one checked reader a type. Each error names the option."""

from __future__ import annotations

import re
from typing import Any

from kvplan.errors import UsageError, nearest, shown
from kvplan.units import MAX_TOKENS

_MOST = 2**31 - 1
_SEPARATORS = re.compile(r"[,/]+")
_ON, _OFF = ("on", "enabled", "true", "1"), ("off", "disabled", "false", "0")

# Types that llama-server takes for the cache: common/arg.cpp kv_cache_types.
CACHE_TYPES = ("f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "iq4_nl", "q5_0", "q5_1")


def integer(name: str, value: Any, least: int, most: int = _MOST, *, usual: int = 4) -> int:
    """A whole number in a range; ``usual`` is one for the hint."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise UsageError(
            f"{name} is a whole number from {least:,} to {most:,}, not {shown(value)}.",
            hint=f"Write -o {name}={usual}, or leave it out for the default.",
        )
    return value


def count(name: str, value: Any) -> int:
    """A whole number of at least 1."""
    return integer(name, value, 1)


def amount(name: str, value: Any) -> int:
    """A whole number of at least 0."""
    return integer(name, value, 0)


def tokens(name: str, value: Any) -> int:
    """A number of tokens; 0 is the model's own maximum."""
    return integer(name, value, 0, MAX_TOKENS, usual=32_768)


def flag(name: str, value: Any) -> bool:
    """True or false, or one of llama.cpp's words for them."""
    if isinstance(value, bool):
        return value
    word = str(value).casefold() if isinstance(value, str | int) else ""
    if word not in (*_ON, *_OFF):
        raise UsageError(
            f"{name} is true or false, not {shown(value)}.", hint=f"Write -o {name}=true."
        )
    return word in _ON


def attention(name: str, value: Any) -> bool | None:
    """Flash attention: on, off, or None for auto."""
    word = str(value).casefold() if isinstance(value, str | int) else ""
    if word not in (*_ON, *_OFF, "auto", "-1"):
        raise UsageError(
            f"{name} is on, off or auto, not {shown(value)}.", hint=f"Write -o {name}=on."
        )
    return None if word in ("auto", "-1") else flag(name, value)


def cache_type(name: str, value: Any) -> str:
    """A type of the cache."""
    word = value.casefold() if isinstance(value, str) else ""
    if word not in CACHE_TYPES:
        close = nearest(word, CACHE_TYPES) if word else None
        raise UsageError(
            f"{name} is one of {', '.join(CACHE_TYPES)}, not {shown(value)}.", hint=close
        )
    return word


def layers(name: str, value: Any) -> int | str:
    """A number of layers, ``all``, or ``auto``."""
    if value in ("auto", -1):
        return "auto"
    if value in ("all", -2):
        return "all"
    if isinstance(value, str):
        raise UsageError(
            f"{name} is a number of layers, all or auto, not {shown(value)}.",
            hint=f"Write -o {name}=auto for what --fit chooses.",
        )
    return amount(name, value)


def proportions(name: str, value: Any) -> tuple[float, ...]:
    """Shares of the devices, such as ``3,1``."""
    parts = _SEPARATORS.split(value) if isinstance(value, str) else value
    if isinstance(parts, int | float):
        parts = (parts,)
    found = [_number(part) for part in parts] if isinstance(parts, list | tuple) else []
    if not found or None in found or not any(found) or len(found) > 128:
        raise UsageError(
            f"{name} lists a share of the model for each GPU, not {shown(value)}.",
            hint=f"Write -o {name}=3,1.",
        )
    return tuple(part for part in found if part is not None)


def word(name: str, value: Any) -> str:
    """A short text."""
    if not isinstance(value, str) or not 0 < len(value) <= 4096:
        raise UsageError(f"{name} is a text, not {shown(value)}.", hint="Give a short text.")
    return value


def _number(part: Any) -> float | None:
    if isinstance(part, bool) or not isinstance(part, str | int | float):
        return None
    try:
        number = float(part)
    except ValueError:
        return None
    return number if 0 <= number <= 1e12 else None
