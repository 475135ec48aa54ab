"""A store of blocks with least-recently-used eviction: the GPU's pool, or a tier behind it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING

from kvplan.planning.simulate import runs as of_runs
from kvplan.planning.simulate.runs import Batch, Run

if TYPE_CHECKING:
    from kvplan.planning.simulate.content import Chunk

Evicted = Callable[[object, int, int, int], None]
"""Told of evicted blocks: chunk, slot, first block and one past the last."""


class Store:
    """Blocks in use, blocks kept for whoever may want them again, and empty ones.

    Args:
        capacity: Blocks it has.
        evicted: Told of kept blocks that had to go.
    """

    def __init__(self, capacity: int, evicted: Evicted | None = None) -> None:
        self.capacity = capacity
        self.empty: int = capacity
        self.kept: int = 0
        self._evicted = evicted
        self._order: OrderedDict[Batch, None] = OrderedDict()

    @property
    def free(self) -> int:
        """Blocks that can be had: empty ones, then the ones kept longest."""
        return self.empty + self.kept

    @property
    def used(self) -> int:
        """Blocks that requests hold."""
        return self.capacity - self.empty - self.kept

    def claim(self, count: int) -> None:
        """Takes blocks that `free` was asked for; kept ones are evicted where it has to be."""
        if count > self.empty:
            self._evict(count - self.empty)
        self.empty -= count

    def give_back(self, count: int) -> None:
        """Returns claimed blocks that nobody could find again."""
        self.empty += count

    def take(self, chunk: Chunk, slot: int, low: int, high: int) -> None:
        """One more request holds these resident blocks."""
        for run in of_runs.within(chunk.runs[slot], low, high):
            if run.holders == 0:
                self._pick_up(run)
            run.holders += 1

    def put(self, chunk: Chunk, slot: int, low: int, high: int) -> int:
        """Claimed blocks now hold this content; returns how many are a second copy.

        A second copy is held beside the first one, and nobody can find it again.
        """
        held = chunk.runs.get(slot)
        if held is None:
            chunk.runs[slot] = [Run(low, high, 1, None)]
            return 0
        missing = list(of_runs.gaps(held, low, high))
        if missing != [(low, high)]:
            for run in of_runs.within(held, low, high):
                if run.holders == 0:
                    self._pick_up(run)
                    # Its blocks are in use again; the claimed copy is the second one.
                run.holders += 1
        for start, stop in missing:
            of_runs.add(held, start, stop, 1)
        return high - low - sum(stop - start for start, stop in missing)

    def drop(self, chunk: Chunk, slot: int, low: int, high: int) -> None:
        """One request fewer holds these blocks; what none holds is kept, the last block least."""
        held = chunk.runs[slot]
        batch = Batch(held, (chunk, slot))
        for run in of_runs.within(held, low, high):
            run.holders -= 1
            if run.holders == 0:
                run.batch = batch
                batch.runs.append(run)
                self.kept += run.high - run.low
        if batch.runs:
            self._order[batch] = None

    def keep(self, chunk: Chunk, slot: int, low: int, high: int) -> None:
        """Keeps content that no request holds, as far as it is not there yet (for tiers)."""
        held = chunk.runs.setdefault(slot, [])
        for start, stop in list(of_runs.gaps(held, low, high)):
            count = min(stop - start, self.capacity)
            if start + count < stop and self._evicted is not None:
                # The last blocks come first and have to go for the others.
                self._evicted(chunk, slot, start + count, stop)
            if not count:
                continue
            self.claim(count)
            batch = Batch(held, (chunk, slot))
            run = of_runs.add(held, start, start + count, 0)
            run.batch = batch
            batch.runs.append(run)
            self.kept += count
            self._order[batch] = None

    def refresh(self, chunk: Chunk, slot: int, low: int, high: int) -> None:
        """Kept blocks were wanted again: they are evicted last (for tiers)."""
        self.take(chunk, slot, low, high)
        self.drop(chunk, slot, low, high)

    def _pick_up(self, run: Run) -> None:
        batch = run.batch
        if batch is None:
            return
        batch.runs.remove(run)
        run.batch = None
        self.kept -= run.high - run.low
        if not batch.runs:
            del self._order[batch]

    def _evict(self, count: int) -> None:
        while count > 0:
            batch = next(iter(self._order))
            run = batch.runs[-1]
            taken = min(count, run.high - run.low)
            run.high -= taken
            count -= taken
            self.kept -= taken
            self.empty += taken
            if run.low == run.high:
                batch.runs.pop()
                batch.home.remove(run)
                if not batch.runs:
                    del self._order[batch]
            if self._evicted is not None:
                chunk, slot = batch.owner
                self._evicted(chunk, slot, run.high, run.high + taken)
