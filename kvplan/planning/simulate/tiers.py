"""Memory behind the GPU's: host, then disk. What is evicted moves down; what is wanted comes back.

A tier keeps what the one above it evicted, the least recently used goes first. Loading takes
bytes over bandwidth, one request after the other on each link; writing down is counted and
delays nobody.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kvplan.planning.simulate import runs as of_runs
from kvplan.planning.simulate.content import Chunk
from kvplan.planning.simulate.store import Store


@dataclass(frozen=True, slots=True)
class Tier:
    """A memory behind the GPU's.

    Attributes:
        name: ``host`` or ``disk``.
        blocks: Blocks that it holds.
        bytes_per_s: How fast it is read.
    """

    name: str
    blocks: int
    bytes_per_s: float


class Tiers:
    """All tiers of one replica.

    Args:
        levels: From the fastest to the slowest.
        groups: Groups of blocks in the pool; a tier has a slot for each.
        block_bytes: Bytes of a block on all of the replica's ranks.
    """

    def __init__(self, levels: tuple[Tier, ...], groups: int, block_bytes: int) -> None:
        self.levels = levels
        self.written_blocks: list[int] = [0] * len(levels)
        self._groups = groups
        self._bytes = block_bytes
        self._stores = [Store(level.blocks, self.evicted) for level in levels]
        self._free_at = [0.0] * len(levels)

    def slots(self, group: int) -> tuple[int, ...]:
        """Where a group's blocks can lie: on the GPU, then tier by tier."""
        return tuple(group + level * self._groups for level in range(len(self.levels) + 1))

    def evicted(self, chunk: object, slot: int, low: int, high: int) -> None:
        """Takes over what the memory above had to give up."""
        level = slot // self._groups
        if level < len(self.levels) and isinstance(chunk, Chunk):
            self.written_blocks[level] += high - low
            self._stores[level].keep(chunk, slot + self._groups, low, high)

    def count(self, missing: Iterable[tuple[Chunk, int, int, int]]) -> tuple[int, ...]:
        """Blocks that each tier has of what the GPU has not; the fastest one gives them."""
        counts = [0] * len(self.levels)
        for chunk, slot, low, high in missing:
            wanted = [(low, high)]
            for level, store in enumerate(self._stores):
                below = slot + (level + 1) * self._groups
                held = chunk.runs.get(below, [])
                left: list[tuple[int, int]] = []
                for start, stop in wanted:
                    gaps = list(of_runs.gaps(held, start, stop))
                    counts[level] += stop - start - sum(last - first for first, last in gaps)
                    _refresh(store, chunk, below, (start, stop), gaps)
                    left += gaps
                wanted = left
        return tuple(counts)

    def load(self, now: float, blocks: tuple[int, ...]) -> float:
        """When blocks that are asked for now have come; each link serves one after the other."""
        ready = now
        for level, count in enumerate(blocks):
            if count:
                start = max(now, self._free_at[level])
                self._free_at[level] = start + count * self._bytes / self.levels[level].bytes_per_s
                ready = max(ready, self._free_at[level])
        return ready


def _refresh(
    store: Store, chunk: Chunk, slot: int, wanted: tuple[int, int], gaps: list[tuple[int, int]]
) -> None:
    at, end = wanted
    for low, high in [*gaps, (end, end)]:
        if low > at:
            store.refresh(chunk, slot, at, low)
        at = high
