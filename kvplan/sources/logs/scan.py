"""The few lines of a large log that may say something, found without looking at the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import BinaryIO

from kvplan.sources.logs.lines import LONGEST_LINE

_BLOCK = 2**18  # bytes; small enough to stay in a processor's cache while it is searched

RawLine = tuple[int, bytes, bool]


def lines_with(stream: BinaryIO, needles: Sequence[bytes]) -> Iterator[RawLine]:
    """Lines that hold any of ``needles``: number, bytes without the end, whether it has an end.

    A line of more than `LONGEST_LINE` bytes is cut there and has no end.
    """
    number, rest, skipping = 1, b"", False
    while block := stream.read(_BLOCK):
        if skipping:
            end = block.find(b"\n")
            if end < 0:
                continue
            block, skipping, number = block[end + 1 :], False, number + 1
        data = rest + block
        end = data.rfind(b"\n") + 1
        yield from _hits(data[:end], needles, number)
        number += data.count(b"\n", 0, end)
        rest = data[end:]
        if len(rest) > LONGEST_LINE:
            yield from _one(rest[:LONGEST_LINE], needles, number)
            rest, skipping = b"", True
    yield from _one(rest, needles, number)


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
