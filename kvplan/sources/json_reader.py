"""A JSON object from bytes that nobody vouches for.

Python's own parser accepts more than JSON (NaN, duplicate keys), and small hostile files can make
it slow or large. Size, number of values and depth are therefore checked on the bytes, before
anything is built.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from kvplan.errors import InputError
from kvplan.sources.files import too_large

CONFIG_LIMIT = 8 * 2**20  # bytes
MAX_VALUES = 400_000  # bounds memory; the index of a large 4-bit model has 280,000 values
MAX_DEPTH = 64
_WIDE_LIMIT = 16 * 2**20  # bytes: one character beyond ASCII makes a str up to four times as large
MAX_INTEGER = 2**63
_RIGHT_FILE = "Check that this is the file you meant: no model's configuration looks so."
_MISTYPED = "Check the number: no size of a model is as large."

# Mamba-2 configurations write this one as [0.0, Infinity], because their class in transformers
# has float("inf") as its default. It bounds a time step and is no size of anything.
UNBOUNDED_KEYS = frozenset({"time_step_limit"})

_BETWEEN = re.compile(rb'(?:"(?:[^"\\]++|\\.)*+"|[^"\[\]{}]++)++', re.DOTALL)
_NOT_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[]{}")
_INNERMOST = re.compile(rb"\[\]|\{\}")
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
_SURROGATE = re.compile("[\ud800-\udfff]")


def parse_json_object(data: bytes, name: str, *, limit: int = CONFIG_LIMIT) -> dict[str, Any]:
    """Reads a JSON object strictly.

    Args:
        data: The file's bytes.
        name: What the file is called in errors.
        limit: Most bytes accepted.

    Raises:
        InputError: too large, not UTF-8, not JSON, not an object, nested too deeply, a key twice
            in one object, NaN or an infinite number, an integer beyond 64 bits.
    """
    if len(data) > limit:
        raise too_large(len(data), limit, name)
    _check_shape(data, name)
    result = _parse(_decode(data, name), name)
    if not isinstance(result, dict):
        raise InputError(
            f"The file holds {_kind(result)} where a JSON object was expected.",
            hint="A config.json starts with { and holds keys such as model_type.",
            location=name,
        )
    return result


def _check_shape(data: bytes, name: str) -> None:
    """Refuses what would build too large or too deep a tree."""
    openings = _openings(data)
    if openings + data.count(b",") > MAX_VALUES:
        raise InputError(
            f"The file holds more than {MAX_VALUES:,} values.", hint=_RIGHT_FILE, location=name
        )
    # Brackets inside strings don't count, but taking strings out is slow: only where it matters.
    if openings > MAX_DEPTH and _too_deep(_BETWEEN.sub(b"", data).translate(None, _NOT_BRACKETS)):
        raise _nested(name)


def _openings(data: bytes) -> int:
    return data.count(b"[") + data.count(b"{")


def _too_deep(brackets: bytes) -> bool:
    """Whether more than MAX_DEPTH levels are open at once: each pass removes the innermost."""
    for _ in range(MAX_DEPTH):
        outer = _INNERMOST.sub(b"", brackets)
        if outer == brackets:
            break
        brackets = outer
    return _openings(brackets) > MAX_DEPTH or _INNERMOST.search(brackets) is not None


def _decode(data: bytes, name: str) -> str:
    if len(data) > _WIDE_LIMIT and not data.isascii():
        raise InputError("The file is large, and not plain ASCII.", hint=_RIGHT_FILE, location=name)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(
            f"The file is not UTF-8 text (byte {error.start} is 0x{data[error.start]:02x}).",
            hint="Check that this is a JSON file.",
            location=name,
        ) from None


def _parse(text: str, name: str) -> Any:
    try:
        result = json.loads(text, object_pairs_hook=_unique, parse_int=_integer, parse_float=_float)
    except json.JSONDecodeError as error:
        raise InputError(
            f"The file is not JSON: {error.msg}.",
            hint="Check that the file is complete.",
            location=f"{name}:{error.lineno}:{error.colno}",
        ) from None
    except RecursionError:
        raise _nested(name) from None
    except _NotAcceptedError as error:
        raise InputError(f"{error}.", hint=error.hint, location=name) from None
    if "Infinity" in text or "NaN" in text:
        _refuse_not_finite(result, name)
    if _SURROGATE_ESCAPE.search(text):
        _refuse_surrogates(result, name)
    return result


class _NotAcceptedError(Exception):
    """A value that is JSON for Python and yet refused; the sentence lacks only its full stop."""

    def __init__(self, sentence: str, hint: str) -> None:
        super().__init__(sentence)
        self.hint = hint


def _nested(name: str) -> InputError:
    return InputError(
        f"The file is nested more than {MAX_DEPTH} levels deep.", hint=_RIGHT_FILE, location=name
    )


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        twice, _ = Counter(key for key, _ in pairs).most_common(1)[0]
        raise _NotAcceptedError(
            f"The key {twice[:80]!r} appears twice in one object", "Keep one of the two."
        )
    return result


def _integer(text: str) -> int:
    # 20 characters hold every 64-bit integer; int() itself refuses above 4,300 digits.
    if len(text) > 20 or abs(int(text)) > MAX_INTEGER:
        raise _NotAcceptedError(f"The integer {text[:24]}… does not fit in 64 bits", _MISTYPED)
    return int(text)


def _float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise _NotAcceptedError(f"The number {text[:24]} is too large to be one", _MISTYPED)
    return value


def _walk(value: Any, key: str) -> Iterator[tuple[str, Any]]:
    """Every scalar below ``value`` with the key of the object it belongs to."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield key, name
            yield from _walk(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from _walk(inner, key)
    else:
        yield key, value


def _refuse_not_finite(result: Any, name: str) -> None:
    for key, value in _walk(result, ""):
        if not isinstance(value, float) or math.isfinite(value):
            continue
        if math.isnan(value) or key not in UNBOUNDED_KEYS:
            raise InputError(
                f"The value of {key[:80]!r} is not a finite number ({value}).",
                hint="JSON has no NaN and no Infinity: write a number, or null.",
                location=name,
            )


def _refuse_surrogates(result: Any, name: str) -> None:
    """Half of a surrogate pair is a str that can't be printed."""
    for key, value in _walk(result, ""):
        if isinstance(value, str) and _SURROGATE.search(value):
            raise InputError(
                f"A string in {ascii(key)[:80]} is not valid Unicode.",
                hint="A \\ud800 escape is half a character: write both halves, or the character.",
                location=name,
            )


def _kind(value: Any) -> str:
    match value:
        case list():
            return "a list"
        case str():
            return "a string"
        case None:
            return "null"
    return "a single value"
