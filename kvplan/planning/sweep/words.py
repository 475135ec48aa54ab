"""The inputs that can be varied: what each is called and how its values are written."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kvplan.errors import UsageError, shown
from kvplan.planning.sweep.ranges import values_of
from kvplan.units import parse_bytes, parse_tokens

_WHOLE = re.compile(r"\d{1,18}", re.ASCII)
_SIZE = re.compile(r"(\d{1,9})\s*[xX×]\s*(\d{1,9})", re.ASCII)
_JSON = re.compile(r"[\[{\"].*|[+-]?[\d.].*", re.DOTALL)
_WORDS = {"true": True, "false": False, "null": None, "none": None}


@dataclass(frozen=True, slots=True)
class Kind:
    """How the values of an input are written.

    Attributes:
        read: Makes a value of a word.
        ranges: Whether ``a..b`` is a range.
    """

    read: Callable[[str], Any]
    ranges: bool = False


def read_whole(text: str) -> int:
    """A whole number of at least 1."""
    if not _WHOLE.fullmatch(text) or int(text) < 1:
        raise UsageError(f"{shown(text)} is not a whole number from 1.", hint="Write 1, 2, 4 ...")
    return int(text)


def read_from_zero(text: str) -> int:
    """A whole number, 0 included."""
    return 0 if text == "0" else read_whole(text)


def read_context(text: str) -> int | str:
    """Tokens, or ``auto``."""
    return "auto" if text.lower() == "auto" else parse_tokens(text)


def read_image_size(text: str) -> tuple[int, int]:
    """Width and height in pixels."""
    sides = _SIZE.fullmatch(text)
    if sides is None:
        raise UsageError(f"{shown(text)} is not the size of an image.", hint="Write 1024x768.")
    return int(sides[1]), int(sides[2])


def read_option(text: str) -> Any:
    """A number, true, false, null, a JSON object, array or string; anything else is a string.

    >>> read_option("64"), read_option("0.9"), read_option("true"), read_option("fp8")
    (64, 0.9, True, 'fp8')
    """
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if not _JSON.fullmatch(text):
        return text
    try:
        return json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        if text[0] in '[{"':
            raise UsageError(
                f"{shown(text)} is not JSON.", hint="Put it in single quotes."
            ) from error
        return text


def _no_number(constant: str) -> None:
    raise ValueError(constant)


_COUNT = Kind(read_whole, ranges=True)
_TEXT = Kind(str)
OPTION = Kind(read_option, ranges=True)
"""Any other name is an option of the engine."""

KINDS: Mapping[str, Kind] = {
    "model": _TEXT,
    "gpu": _TEXT,
    "engine": _TEXT,
    "tp": _COUNT,
    "pp": _COUNT,
    "dp": _COUNT,
    "dcp": _COUNT,
    "context": Kind(read_context, ranges=True),
    "concurrency": _COUNT,
    "weights": _TEXT,
    "kv_dtype": _TEXT,
    "dtype": _TEXT,
    "kv_budget": Kind(parse_bytes, ranges=True),
    "images": Kind(read_from_zero, ranges=True),
    "image_size": Kind(read_image_size),
    "image_tokens": _COUNT,
}
"""Inputs of `kvplan.size` by name, in the order of a sweep's columns."""


def read_values(name: str, text: str, kinds: Mapping[str, Kind] = KINDS) -> tuple[Any, ...]:
    """The values of an input, as a text gives them.

    >>> read_values("context", "8k..32k*2,100k")
    (8192, 16384, 32768, 102400)
    >>> read_values("gpu_memory_utilization", "0.8..0.9+0.05")
    (0.8, 0.85, 0.9)

    Raises:
        UsageError: see `kvplan.planning.sweep.ranges.values_of`.
    """
    kind = kinds.get(name, OPTION)
    return values_of(text, kind.read, ranges=kind.ranges)
