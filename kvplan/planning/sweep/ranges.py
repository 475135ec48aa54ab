"""The words for a series of values: lists, ``8k..128k*2`` and ``1..200+5``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from math import log
from typing import Any

from kvplan.errors import UsageError, shown

MOST_VALUES = 1_000_000
_RANGE = re.compile(r"(.+?)\.\.(.+?)(?:([*+])(.+))?", re.DOTALL)
_NUMBER = re.compile(r"[+-]?\d{1,18}(\.\d{1,18})?", re.ASCII)
_OPEN, _CLOSE = "{[", "}]"
_HOW = "Write 8k..128k*2 (times two), 1..200+5 (plus five), 1..8, or a list: 8k,32k."


def values_of(text: str, read: Callable[[str], Any], *, ranges: bool) -> tuple[Any, ...]:
    """The values that a text stands for, each once, in their order.

    Args:
        text: Values and ranges with commas between them; with semicolons where values hold
            commas of their own.
        read: Makes a value of a word.
        ranges: Whether two dots make a range of numbers.

    Raises:
        UsageError: no values, too many, or a word that makes no sense.
    """
    found: dict[Any, None] = {}
    for word in split(text):
        match = _RANGE.fullmatch(word) if ranges else None
        several = (read(word),) if match is None else _series(word, match, read)
        for value in several:
            found[_hashable(value)] = None
        if len(found) > MOST_VALUES:
            raise UsageError(
                f"{shown(text)} has too many values.", hint=f"At most {MOST_VALUES:,}."
            )
    if not found:
        raise UsageError("No values are given.", hint=_HOW)
    return tuple(map(_plain, found))


def split(text: str) -> Iterator[str]:
    """The words between commas outside brackets and quotes; between semicolons if there are any.

    >>> list(split("8k, 32k")), list(split('{"a": 1, "b": 2},null')), list(split("a,b;c"))
    (['8k', '32k'], ['{"a": 1, "b": 2}', 'null'], ['a,b', 'c'])
    """
    separator = ";" if ";" in text else ","
    depth, quoted, start = 0, False, 0
    for place, character in enumerate(f"{text}{separator}"):
        if character == '"':
            quoted = not quoted
        elif not quoted:
            depth += (character in _OPEN) - (character in _CLOSE)
        at_end = place == len(text)
        if at_end or (character == separator and not quoted and depth <= 0):
            word = text[start:place].strip()
            start = place + 1
            if word:
                yield word


def _series(word: str, match: re.Match[str], read: Callable[[str], Any]) -> Sequence[Any]:
    ends = [read(match[place].strip()) for place in (1, 2)]
    low, high = (_number(word, end) for end in ends)
    by = match[3] or "+"
    step = _step(word, by, match[4], read)
    if low > high or (by == "*" and low <= 0):
        raise UsageError(f"{shown(word)} is an empty range.", hint=_HOW)
    count = _count(low, high, by, step)
    if count > MOST_VALUES:
        raise UsageError(f"{shown(word)} has too many values.", hint=f"At most {MOST_VALUES:,}.")
    numbers = _products(low, step, count) if by == "*" else _sums(low, step, count)
    whole = all(isinstance(end, int) for end in ends) and (by == "*" or step.denominator == 1)
    return [int(number) if whole else float(number) for number in numbers]


def _count(low: Fraction, high: Fraction, by: str, step: Fraction) -> int:
    if by == "+":
        return int((high - low) / step) + 1
    # Half a billionth of a step more, so that an end that is met is not missed by rounding.
    return int(log(high / low) / log(step) + 1e-9) + 1


def _sums(low: Fraction, step: Fraction, count: int) -> Iterator[Fraction]:
    return (low + place * step for place in range(count))


def _products(low: Fraction, factor: Fraction, count: int) -> Iterator[Fraction | float]:
    if factor.denominator == 1:
        return (low * factor**place for place in range(count))
    # As fractions they would have ever more digits.
    return (round(float(low) * float(factor) ** place, 9) for place in range(count))


def _step(word: str, by: str, text: str | None, read: Callable[[str], Any]) -> Fraction:
    if text is None:
        return Fraction(1)
    plain = text.strip()
    step = Fraction(plain) if _NUMBER.fullmatch(plain) else _number(word, read(plain))
    if step <= (1 if by == "*" else 0):
        more = "A factor is more than 1" if by == "*" else "A step is more than 0"
        raise UsageError(f"{shown(word)} never ends. {more}.", hint=_HOW)
    return step


def _number(word: str, value: Any) -> Fraction:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UsageError(f"{shown(word)} is a range of no numbers.", hint=_HOW)
    return Fraction(str(value))


class _Held:
    """A value that can't be a key, such as an option that is a mapping."""

    def __init__(self, value: Any) -> None:
        self.value = value


def _hashable(value: Any) -> Any:
    return _Held(value) if isinstance(value, dict | list) else (type(value), value)


def _plain(key: Any) -> Any:
    return key.value if isinstance(key, _Held) else key[1]
