"""Sizes and counts as people write them. Bytes are integers; GiB = 2**30, GB = 10**9."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction

from kvplan.errors import UsageError

KIB, MIB, GIB, TIB = 2**10, 2**20, 2**30, 2**40

_BYTE_UNITS = {
    "": 1, "b": 1,
    "kib": KIB, "mib": MIB, "gib": GIB, "tib": TIB,
    "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12,
}  # fmt: skip
# Context lengths are powers of two wherever models state them, so 32k is 32,768 tokens.
_TOKEN_UNITS = {"": 1, "k": 2**10, "m": 2**20}
# Separators only where they separate: in "1,5" a comma may mean a fraction, so that is refused.
_NUMBER = re.compile(
    r"(\d{1,20}|\d{1,3}(?:,\d{3}){1,6}|\d{1,3}(?:_\d{3}){1,6})(\.\d{1,12})?\s*([a-zA-Z]{0,4})",
    re.ASCII,
)
_LONGEST = 64

MAX_BYTES = 2**60
MAX_TOKENS = 2**40


def _split(text: str, what: str, example: str) -> tuple[Fraction, str]:
    match = _NUMBER.fullmatch(text.strip()) if len(text) <= _LONGEST else None
    if match is None:
        shown = text if len(text) <= _LONGEST else text[:20] + "…"
        raise UsageError(f"{shown!r} is not {what}.", hint=f"Write it like {example}.")
    return Fraction(match[1].replace(",", "") + (match[2] or "")), match[3]


def _at_most(count: int, most: int, text: str, what: str) -> int:
    if count > most:
        raise UsageError(
            f"{text!r} is more than any {what} kvplan plans for.", hint=f"At most {most:,}."
        )
    return count


def parse_bytes(text: str) -> int:
    """Reads a memory size; a fraction of a byte is dropped.

    >>> parse_bytes("40.5GiB"), parse_bytes("80GB"), parse_bytes("1024")
    (43486543872, 80000000000, 1024)

    Raises:
        UsageError: not a size, an unknown unit, or above 2**60 bytes.
    """
    number, unit = _split(text, "a memory size", "40.5GiB or 80GB")
    factor = _BYTE_UNITS.get(unit.lower())
    if factor is None:
        raise UsageError(
            f"{unit!r} in {text!r} is not a unit of memory.",
            hint="Use GiB (2^30 bytes) or GB (10^9 bytes).",
        )
    return _at_most(int(number * factor), MAX_BYTES, text, "memory")


def parse_tokens(text: str) -> int:
    """Reads a token count: ``32k`` is 32,768.

    >>> parse_tokens("32k"), parse_tokens("131072"), parse_tokens("1M"), parse_tokens("1.5k")
    (32768, 131072, 1048576, 1536)

    Raises:
        UsageError: not a count, a fraction of a token, zero or less, or above 2**40.
    """
    number, unit = _split(text, "a number of tokens", "32k or 131072")
    factor = _TOKEN_UNITS.get(unit.lower())
    if factor is None:
        raise UsageError(
            f"{unit!r} in {text!r} is not a unit of tokens.", hint="Write 32k or 32768."
        )
    if number * factor % 1:
        raise UsageError(f"{text!r} is not a whole number of tokens.", hint="Write 32k or 32768.")
    tokens = _at_most(int(number * factor), MAX_TOKENS, text, "context")
    if tokens < 1:
        raise UsageError("A context has at least one token.", hint="Write 32k or 32768.")
    return tokens


def format_bytes(count: float) -> str:
    """Bytes for people, in binary units.

    >>> format_bytes(85017493504), format_bytes(1572864), format_bytes(327680), format_bytes(-12)
    ('79.18 GiB', '1.5 MiB', '320 KiB', '-12 B')
    """
    magnitude = abs(count)
    # Half a step early, so that rounding never prints 1,024 of the smaller unit.
    if magnitude >= GIB - MIB // 2:
        return f"{count / GIB:,.2f} GiB"
    if magnitude >= MIB - KIB // 2:
        return f"{count / MIB:,.0f} MiB" if count % MIB == 0 else f"{count / MIB:,.1f} MiB"
    if magnitude >= KIB - 0.5:
        return f"{count / KIB:,.0f} KiB" if count % KIB == 0 else f"{count / KIB:,.1f} KiB"
    return f"{count:,.0f} B"


def format_count(count: float) -> str:
    """A count with thousands separated: ``331,776``."""
    return f"{count:,.0f}"


def format_money(amount: float, currency: str | None = None, *, digits: int = 6) -> str:
    """Money with so many significant digits, never as a power of ten.

    >>> format_money(0.0000578704, "USD", digits=4), format_money(2.5)
    ('0.00005787 USD', '2.5')
    """
    return f"{Decimal(f'{amount:.{digits}g}'):,f} {currency or ''}".strip()
