"""Kinds of values that an expectation may speak of, and how each is written."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from kvplan.errors import UsageError
from kvplan.units import format_bytes, format_count, format_money, parse_bytes, parse_tokens

Kind = Literal["count", "tokens", "bytes", "share", "number", "money", "text", "flag", "any"]
Value = int | float | str | bool

EXAMPLES: dict[Kind, str] = {
    "count": "50 or 1,000",
    "tokens": "400k or 409600",
    "bytes": "40.5GiB or 80GB",
    "share": "10% or 0.1",
    "number": "12.5",
    "money": "0.002 or 0.002 USD",
    "text": "fp8",
    "flag": "true or false",
    "any": "64, true or a word",
}
ARE: dict[Kind, str] = {
    "count": "a count",
    "tokens": "a number of tokens",
    "bytes": "an amount of memory",
    "share": "a share",
    "number": "a number",
    "money": "money",
    "text": "a word",
    "flag": "true or false",
    "any": "an option of the engine",
}
# Only these have an order; of the others an expectation can only ask whether they are the same.
ORDERED: frozenset[Kind] = frozenset(
    ("count", "tokens", "bytes", "share", "number", "money", "any")
)

_INTEGER = re.compile(r"-?(?:\d{1,18}|\d{1,3}(?:[,_]\d{3}){1,5})", re.ASCII)
_NUMBER = re.compile(r"-?\d{1,18}(?:\.\d{1,12})?", re.ASCII)
_SHARE = re.compile(r"(-?\d{1,6}(?:\.\d{1,12})?)\s*(%?)", re.ASCII)
_MONEY = re.compile(r"(\d{1,15}(?:\.\d{1,12})?)(?:\s*([A-Z]{3}))?", re.ASCII)
_WORD = re.compile(r"[\w.+/@-]{1,200}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Quantity:
    """A value that was written down.

    Attributes:
        currency: Where it is money and one was named.
    """

    value: Value
    currency: str | None = None


def read(text: str, kind: Kind) -> Quantity:
    """Reads a value of one kind.

    Raises:
        UsageError: it is of another kind, or has a unit that this kind does not have.

    >>> read("400k", "tokens").value, read("10%", "share").value, read("1,000", "count").value
    (409600, 0.1, 1000)
    """
    match kind:
        case "tokens":
            return Quantity(_tokens(text))
        case "bytes":
            return Quantity(parse_bytes(text))
        case "money":
            return _money(text)
        case _:
            value = _plain(text, kind)
    if value is None:
        raise UsageError(f"{text!r} is not {ARE[kind]}.", hint=f"Write {EXAMPLES[kind]}.")
    return Quantity(value)


def _tokens(text: str) -> int:
    return 0 if text == "0" else parse_tokens(text)


def _money(text: str) -> Quantity:
    match = _MONEY.fullmatch(text)
    if match is None:
        raise UsageError(f"{text!r} is not money.", hint=f"Write {EXAMPLES['money']}.")
    return Quantity(float(match[1]), match[2])


def _plain(text: str, kind: Kind) -> Value | None:
    match kind:
        case "count":
            return _whole(text) if _INTEGER.fullmatch(text) else None
        case "number":
            return float(text) if _NUMBER.fullmatch(text) else None
        case "share":
            return _share(text)
        case "flag":
            return {"true": True, "false": False}.get(text)
        case "text":
            return text if _WORD.fullmatch(text) else None
        case _:
            return _any(text)


def _whole(text: str) -> int:
    return int(text.replace(",", "").replace("_", ""))


def _share(text: str) -> float | None:
    match = _SHARE.fullmatch(text)
    if match is None:
        return None
    if match[2]:
        return float(match[1]) / 100
    # 10 is meant as 10 % more often than as 1,000 %.
    return float(match[1]) if abs(float(match[1])) <= 1 else None


def _any(text: str) -> Value | None:
    """An option's value by how it looks."""
    if text in ("true", "false"):
        return text == "true"
    if _INTEGER.fullmatch(text):
        return _whole(text)
    if _NUMBER.fullmatch(text):
        return float(text)
    return text if _WORD.fullmatch(text) else None


def show(value: Value, kind: Kind, currency: str | None = None) -> str:
    """A value for people, with its unit.

    >>> show(409600, "tokens"), show(0.125, "share"), show(2**30, "bytes")
    ('409,600 tokens', '12.5%', '1.00 GiB')
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else _show_number(value, kind, currency)


def _show_number(value: float, kind: Kind, currency: str | None) -> str:
    match kind:
        case "tokens":
            return f"{format_count(value)} tokens"
        case "bytes":
            return format_bytes(value)
        case "share":
            return f"{100 * value:.4g}%"
        case "money":
            return format_money(value, currency)
        case _:
            return f"{value:,}" if isinstance(value, int) else f"{value:,.6g}"
