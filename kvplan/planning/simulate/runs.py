"""Runs of neighbouring blocks that are held together and were let go together.

Millions of blocks move in few runs: what a prompt takes, what an eviction cuts off. Each run lies
in one chunk of content; blocks are counted from the start of the prompt.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from operator import attrgetter


class Run:
    """Blocks ``low`` to ``high`` (not included) of one chunk.

    Attributes:
        holders: Requests that hold them; 0: they are kept until somebody needs the room.
        batch: Where it stands among what may be evicted, or None while it is held.
    """

    __slots__ = ("batch", "high", "holders", "low")

    def __init__(self, low: int, high: int, holders: int, batch: Batch | None) -> None:
        self.low: int = low
        self.high: int = high
        self.holders: int = holders
        self.batch: Batch | None = batch


class Batch:
    """Runs of one chunk that were let go together: the last block is evicted first.

    Attributes:
        home: The list of the chunk's runs that its runs lie in.
        runs: In order.
        owner: The chunk and slot, for whoever takes the evicted blocks over.
    """

    __slots__ = ("home", "owner", "runs")

    def __init__(self, home: list[Run], owner: tuple[object, int]) -> None:
        self.home: list[Run] = home
        self.runs: list[Run] = []
        self.owner: tuple[object, int] = owner


_HIGH = attrgetter("high")
_LOW = attrgetter("low")


def within(runs: list[Run], low: int, high: int) -> list[Run]:
    """The runs of a list that lie between ``low`` and ``high``, cut there where they cross."""
    _cut(runs, low)
    _cut(runs, high)
    first = bisect_left(runs, low, key=_LOW)
    last = first
    while last < len(runs) and runs[last].low < high:
        last += 1
    return runs[first:last]


def gaps(runs: list[Run], low: int, high: int) -> Iterator[tuple[int, int]]:
    """Stretches between ``low`` and ``high`` that no run covers."""
    for run in runs[bisect_left(runs, low + 1, key=_HIGH) :]:
        if run.low >= high:
            break
        if run.low > low:
            yield low, run.low
        low = run.high
    if low < high:
        yield low, high


def add(runs: list[Run], low: int, high: int, holders: int) -> Run:
    """A new run of blocks that none covers; it grows the run before it where both are alike."""
    index = bisect_left(runs, low, key=_LOW)
    if index and holders:
        before = runs[index - 1]
        if before.high == low and before.holders == holders:
            before.high = high
            return before
    run = Run(low, high, holders, None)
    runs.insert(index, run)
    return run


def covered(runs: list[Run], low: int, high: int) -> int:
    """The end of the stretch from ``low`` on that runs cover without a gap, at most ``high``."""
    for run in runs[bisect_left(runs, low + 1, key=_HIGH) :]:
        if run.low > low or low >= high:
            break
        low = run.high
    return min(low, high)


def _cut(runs: list[Run], at: int) -> None:
    """Splits the run that ``at`` lies inside."""
    index = bisect_left(runs, at + 1, key=_HIGH)
    if index == len(runs) or runs[index].low >= at:
        return
    run = runs[index]
    rest = Run(at, run.high, run.holders, run.batch)
    run.high = at
    runs.insert(index + 1, rest)
    if run.batch is not None:
        run.batch.runs.insert(run.batch.runs.index(run) + 1, rest)
