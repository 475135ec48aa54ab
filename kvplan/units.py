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
_NUMBER = re.compile(r"(\d{1,20}(?:\.\d{1,12})?)\s*([a-zA-Z]{0,4})", re.ASCII)

MAX_BYTES = 2**60
MAX_TOKENS = 2**40


def _split(text: str, what: str, example: str) -> tuple[Decimal, str]:
    match = _NUMBER.fullmatch(text.strip().replace("_", "").replace(",", "")[:64])
    if match is None:
        raise UsageError(f"{text[:64]!r} is not {what}.", hint=f"Write it like {example}.")
    return Decimal(match[1]), match[2]


def _whole(number: Decimal, factor: int, text: str, most: int, what: str) -> int:
    exact = Fraction(number) * factor
    if exact.denominator != 1:
        exact = Fraction(int(exact))
    if exact > most:
        raise UsageError(f"{text[:64]!r} is more than any {what} kvplan plans for.")
    return int(exact)


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
            f"{unit!r} in {text[:64]!r} is not a unit of memory.",
            hint="Use GiB (2^30 bytes) or GB (10^9 bytes).",
        )
    return _whole(number, factor, text, MAX_BYTES, "memory")


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
            f"{unit!r} in {text[:64]!r} is not a unit of tokens.", hint="Write 32k or 32768."
        )
    if Fraction(number) * factor % 1:
        raise UsageError(f"{text[:64]!r} is not a whole number of tokens.")
    tokens = _whole(number, factor, text, MAX_TOKENS, "context")
    if tokens < 1:
        raise UsageError("A context has at least one token.", hint="Write 32k or 32768.")
    return tokens


def format_bytes(count: float) -> str:
    """Bytes for people, in binary units.

    >>> format_bytes(85017493504), format_bytes(327680), format_bytes(-3 * 2**30), format_bytes(12)
    ('79.18 GiB', '320 KiB', '-3.00 GiB', '12 B')
    """
    magnitude = abs(count)
    # The limits are where rounding to the printed digits would reach the next unit's 1024.
    if magnitude >= GIB - MIB // 2:
        return f"{count / GIB:,.2f} GiB"
    if magnitude >= MIB - KIB // 2:
        return f"{count / MIB:,.0f} MiB"
    if magnitude >= KIB:
        return f"{count / KIB:,.0f} KiB" if count % KIB == 0 else f"{count / KIB:,.1f} KiB"
    return f"{count:,.0f} B"


def format_count(count: float) -> str:
    """A count with thousands separated: ``331,776``."""
    return f"{count:,.0f}"
