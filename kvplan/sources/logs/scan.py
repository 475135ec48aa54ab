"""The few lines of a large log that may say something, found without looking at the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import BinaryIO

from kvplan.errors import InputError
from kvplan.sources.logs.lines import LONGEST_LINE

_ENDLESS = 2**30  # bytes without a line's end: no log
_BLOCK = 2**18  # bytes; small enough to stay in a processor's cache while it is searched

RawLine = tuple[int, bytes, bool]


def lines_with(stream: BinaryIO, needles: Sequence[bytes], location: str = "") -> Iterator[RawLine]:
    """Lines that hold any of ``needles``: number, bytes without the end, whether it has an end.

    A line of more than `LONGEST_LINE` bytes is cut there and has no end.

    Args:
        stream: At its start.
        needles: What to look for.
        location: What the file is called in an error.

    Raises:
        InputError: a line that does not end.
    """
    number, rest, skipped = 1, b"", 0
    while block := stream.read(_BLOCK):
        if skipped:
            end = block.find(b"\n")
            if end < 0:
                skipped = _more(skipped, len(block), f"{location}:{number}")
                continue
            block, skipped, number = block[end + 1 :], 0, number + 1
        data = rest + block
        end = data.rfind(b"\n") + 1
        yield from _hits(data[:end], needles, number)
        number += data.count(b"\n", 0, end)
        rest = data[end:]
        if len(rest) > LONGEST_LINE:
            yield from _one(rest[:LONGEST_LINE], needles, number)
            rest, skipped = b"", len(rest)
    yield from _one(rest, needles, number)


def _more(skipped: int, size: int, location: str) -> int:
    if skipped > _ENDLESS:
        raise InputError(
            "The line goes on for more than 1 GiB: this is no log.",
            hint="Name the file that the engine's output went to.",
            location=location,
        )
    return skipped + size


def _one(line: bytes, needles: Sequence[bytes], number: int) -> Iterator[RawLine]:
    if any(needle in line for needle in needles):
        yield number, line, False


def _hits(data: bytes, needles: Sequence[bytes], number: int) -> Iterator[RawLine]:
    """Whole lines in ``data`` that hold a needle, in order; ``number`` is its first line's."""
    starts: dict[int, int] = {}
    for needle in needles:
        place = data.find(needle)
        while place >= 0:
            end = data.find(b"\n", place)
            starts[data.rfind(b"\n", 0, place) + 1] = end
            place = data.find(needle, end)
    seen = 0
    for start in sorted(starts):
        number += data.count(b"\n", seen, start)
        seen = start
        yield number, data[start : starts[start]], True
