"""Values of vLLM's options: one checked reader a type. Each error names the option."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from kvplan.errors import UsageError, nearest, shown
from kvplan.units import MAX_BYTES, parse_bytes

_MOST = 2**31


def integer(name: str, value: Any, least: int, most: int) -> int:
    """A whole number in a range."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise UsageError(
            f"{name} is a whole number from {least:,} to {most:,}, not {shown(value)}.",
            hint=f"Write -o {name}=64, or leave it out for vLLM's own default.",
        )
    return value


def count(name: str, value: Any) -> int:
    """A whole number of at least 1."""
    return integer(name, value, 1, _MOST)


def amount(name: str, value: Any) -> int:
    """A whole number of at least 0."""
    return integer(name, value, 0, _MOST)


def flag(name: str, value: Any) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise UsageError(
            f"{name} is true or false, not {shown(value)}.", hint=f"Write -o {name}=true."
        )
    return value


def share(name: str, value: Any) -> float:
    """A share of the card."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
        raise UsageError(
            f"{name} is a share of the card, above 0 and at most 1, not {shown(value)}.",
            hint=f"Write -o {name}=0.92.",
        )
    return float(value)


def size(name: str, value: Any) -> int:
    """An amount of memory in bytes, or as people write it."""
    return integer(name, parse_bytes(value) if isinstance(value, str) else value, 1, MAX_BYTES)


def word(name: str, value: Any, known: tuple[str, ...] = ()) -> str:
    """A short text, one of ``known`` if there are any (upper and lower case alike)."""
    if not isinstance(value, str) or not 0 < len(value) <= 4096:
        raise UsageError(f"{name} is a word, not {shown(value)}.", hint=_one_of(known))
    by_folded = {each.casefold(): each for each in known}
    if known and value.casefold() not in by_folded:
        raise UsageError(
            f"{name} is not {shown(value)}.", hint=nearest(value, known) or _one_of(known)
        )
    return by_folded[value.casefold()] if known else value


def words(name: str, value: Any) -> tuple[str, ...]:
    """A list of words or numbers; one alone, or several with commas, will do."""
    return tuple(word(name, str(part)) for part in _parts(name, value, "0,sliding_window"))


def counts(name: str, value: Any) -> tuple[int, ...]:
    """A list of whole numbers; one alone, or several with commas, will do."""
    parts = _parts(name, value, "1,2,4,8")
    return tuple(
        count(name, int(part) if isinstance(part, str) and _is_digits(part) else part)
        for part in parts
    )


def mapping(name: str, value: Any) -> dict[str, Any]:
    """A mapping, or the JSON text of one."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            raise _no_mapping(name, value) from None
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise _no_mapping(name, value)
    return dict(value)


def limits(name: str, value: Any) -> dict[str, int]:
    """Items a prompt may have, by modality: a mapping, or ``image=2,video=1``.

    vLLM also takes a mapping of sizes for a modality; its ``count`` is what counts.
    """
    if isinstance(value, str) and not value.lstrip().startswith("{"):
        pairs = [part.partition("=") for part in value.split(",")]
        value = {key.strip(): _number(number.strip()) for key, _, number in pairs}
    return {
        key: amount(f"{name}.{key}", most.get("count", 999) if isinstance(most, Mapping) else most)
        for key, most in mapping(name, value).items()
    }


def _parts(name: str, value: Any, example: str) -> list[Any]:
    if isinstance(value, str):
        return [part.strip() for part in value.split(",")]
    if isinstance(value, int) and not isinstance(value, bool):
        return [value]
    entries = value if isinstance(value, list | tuple) else [None]
    if any(isinstance(entry, bool) or not isinstance(entry, str | int) for entry in entries):
        raise UsageError(
            f"{name} is a list, not {shown(value)}.", hint=f"Write -o {name}={example}."
        )
    return list(entries)


def _is_digits(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 18


def _number(text: str) -> Any:
    return int(text) if _is_digits(text) else text


def _no_mapping(name: str, value: Any) -> UsageError:
    return UsageError(
        f"{name} is a mapping, not {shown(value)}.",
        hint="""Write it as JSON in single quotes: '{"key": 1}'.""",
    )


def _one_of(known: tuple[str, ...]) -> str | None:
    return f"Use one of {', '.join(known)}." if known else None
