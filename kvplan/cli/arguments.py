"""Words of the command line → arguments of `kvplan.size`. Each error names its flag."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeVar

from kvplan.errors import UsageError
from kvplan.units import parse_bytes, parse_tokens

_INTEGER = re.compile(r"[+-]?\d{1,18}", re.ASCII)
_FLOAT = re.compile(
    r"[+-]?(\d{1,18}\.\d{0,18}|\.\d{1,18}|\d{1,18}(?=[eE]))([eE][+-]?\d{1,3})?", re.ASCII
)
_OPTION_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}", re.ASCII)
_WORDS = {"true": True, "false": False, "null": None, "none": None}
_LONGEST_VALUE = 10_000

Value = TypeVar("Value")


def parse_count(flag: str, text: str) -> int:
    """A whole number of at least 1."""
    if not _INTEGER.fullmatch(text.strip()):
        raise UsageError(
            f"{text[:40]!r} is not a whole number.", hint=f"Write {flag} 4.", location=flag
        )
    count = int(text)
    if count < 1:
        raise UsageError(
            f"{count} is too few.", hint="It is a whole number of at least 1.", location=flag
        )
    return count


def parse_optional_count(flag: str, text: str | None) -> int | None:
    """A whole number of at least 1, if one was given."""
    return None if text is None else parse_count(flag, text)


def parse_context(text: str | None) -> int | Literal["auto"] | None:
    """A number of tokens, ``auto``, or None for the model's own maximum."""
    if text is None or text.strip().lower() == "auto":
        return None if text is None else "auto"
    return _at("--context", parse_tokens, text)


def parse_kv_budget(texts: Sequence[str]) -> int | tuple[int, ...] | None:
    """One amount for every rank, or one a rank: the flag repeated, or a list with commas."""
    amounts = [_at("--kv-budget", _budget, part) for text in texts for part in _parts(text)]
    if not amounts:
        return None
    return amounts[0] if len(amounts) == 1 else tuple(amounts)


def parse_options(texts: Sequence[str]) -> dict[str, Any]:
    """``name=value`` pairs, values typed as `parse_value` does."""
    options: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or not _OPTION_NAME.fullmatch(name):
            raise UsageError(
                f"{text[:60]!r} is not an option.",
                hint="Write it like -o gpu_memory_utilization=0.9.",
                location="-o",
            )
        if name in options:
            raise UsageError(f"{name} is given twice.", hint="Keep one of the two.", location="-o")
        options[name] = parse_value(name, value)
    return options


def parse_value(name: str, text: str) -> Any:
    """A number, true, false, null, a JSON object, array or string; anything else is a string.

    >>> parse_value("a", "64"), parse_value("a", "0.9"), parse_value("a", "true")
    (64, 0.9, True)
    >>> parse_value("a", '{"method": "ngram"}'), parse_value("a", "fp8")
    ({'method': 'ngram'}, 'fp8')
    """
    value = text.strip()
    if len(value) > _LONGEST_VALUE:
        raise UsageError(f"The value of {name} is too long.", location="-o")
    if value.lower() in _WORDS:
        return _WORDS[value.lower()]
    if _INTEGER.fullmatch(value):
        return int(value)
    if _FLOAT.fullmatch(value):
        return _finite(name, float(value))
    return _json(name, value) if value[:1] in ("{", "[", '"') else value


def _finite(name: str, value: float) -> float:
    if math.isinf(value):
        raise UsageError(f"The value of {name} is too large.", location="-o")
    return value


def _json(name: str, text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise UsageError(
            f"The value of {name} is not JSON: {text[:60]!r}.",
            hint="Put it in single quotes, so that the shell leaves its double quotes alone.",
            location="-o",
        ) from error


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key is given twice")
    return found


def _parts(text: str) -> list[str]:
    """The amounts in a list with commas, unless the commas separate thousands."""
    try:
        parse_bytes(text)
    except UsageError:
        return text.split(",")
    return [text]


def _budget(text: str) -> int:
    amount = parse_bytes(text)
    if amount < 1:
        raise UsageError("A KV budget of nothing holds nothing.", hint="Write 40.5GiB.")
    return amount


def _at(flag: str, parse: Callable[[str], Value], text: str) -> Value:
    try:
        return parse(text)
    except UsageError as error:
        raise type(error)(error.message, hint=error.hint, location=flag) from None
