"""Facts: what a line can tell, how it is written there, and what several sightings of it mean."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

Value = int | float | str | bool
# What to make of one process saying it several times: they have to be the same; the least counts
# (every rank's own is printed, and the engine takes the least); the latest counts; they add up.
Several = Literal["agree", "least", "last", "sum"]

_MIB_IN_GIB = 2**10
# Above any machine there is: a larger number is a damaged one.
_MOST_GIB, _MOST_COUNT = 2**14, 2**50
_LONGEST_TEXT = 300


@dataclass(frozen=True)
class Fact:
    """One thing that a log says.

    Attributes:
        pattern: What it looks like, as a regular expression.
        read: Its value, or None where what is written there can't be meant.
        several: What several sightings mean.
        of_rank: Whether each rank has its own; else it holds for the whole start.
    """

    pattern: str
    read: Callable[[str], Value | None]
    several: Several = "agree"
    of_rank: bool = False


def _read_gib(text: str) -> float | None:
    value = float(text)
    return value if abs(value) <= _MOST_GIB else None


def _read_mib(text: str) -> float | None:
    # Logs print hundredths of a MiB: six digits of a GiB keep them.
    return _read_gib(f"{float(text) / _MIB_IN_GIB:.6f}")


def _read_count(text: str) -> int | None:
    value = int(text.replace(",", ""))
    return value if value <= _MOST_COUNT else None


def _read_ratio(text: str) -> float | None:
    value = float(text)
    return value if math.isfinite(value) and value <= _MOST_COUNT else None


def _read_text(text: str) -> str | None:
    return text.strip()[:_LONGEST_TEXT] or None


# 17 digits: fractions are printed as a float holds them.
_DECIMAL = r"-?\d{1,9}(?:\.\d{1,17})?(?![\d.])"
_COUNT = r"(?:\d{1,3}(?:,\d{3}){1,5}|\d{1,16})(?![\d,.]*\d)"
_UNITS = {"B": 2**-30, "KiB": 2**-20, "MiB": 2**-10, "GiB": 1.0, "TiB": 1024.0}


def _read_human(text: str) -> float | None:
    """``11.5 GiB``, as ollama's format/bytes.go@v0.20.0 (HumanBytes2) writes it."""
    number, unit = text.split(" ")
    return _read_gib(f"{float(number) * _UNITS[unit]:.6f}")


def gib(several: Several = "agree") -> Fact:
    """Memory of one rank, printed in units of 2**30 bytes, whatever the engine calls them."""
    return Fact(_DECIMAL, _read_gib, several, of_rank=True)


def mib(several: Several = "agree") -> Fact:
    """Memory of one rank, printed in units of 2**20 bytes."""
    return Fact(_DECIMAL, _read_mib, several, of_rank=True)


def human(several: Several = "agree") -> Fact:
    """Memory of one rank, printed with its unit."""
    return Fact(r"\d{1,9}(?:\.\d)? (?:[KMGT]iB|B)", _read_human, several, of_rank=True)


def count(several: Several = "agree", *, of_rank: bool = False) -> Fact:
    """A whole number, with or without commas."""
    return Fact(_COUNT, _read_count, several, of_rank)


def ratio(several: Several = "agree", *, of_rank: bool = False) -> Fact:
    """A fraction or a multiple."""
    return Fact(_DECIMAL, _read_ratio, several, of_rank)


def text(pattern: str, several: Several = "agree", *, of_rank: bool = False) -> Fact:
    """Words that look like ``pattern``."""
    return Fact(pattern, _read_text, several, of_rank)


def together(several: Several, values: Sequence[Value]) -> Value | None:
    """One value for several sightings, or None where they contradict each other."""
    match several:
        case "last":
            return values[-1]
        case "least":
            return min(value for value in values if isinstance(value, int | float))
        case "sum":
            return round(math.fsum(value for value in values if isinstance(value, int | float)), 6)
    return values[0] if all(value == values[0] for value in values) else None
