"""How often a prompt's blocks are there, for every size of cache at once: the hit-rate curve.

Blocks are looked up when a request comes and referenced when it has gone, the last block first,
as vLLM lets them go. So a block's first blocks are always at least as recent as its last ones,
and one pass of stack distances over the references answers for all capacities.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kvplan.planning.simulate.content import Chunk, Contents
from kvplan.planning.simulate.distances import COLD, Positions, stack_distances
from kvplan.simulation import CurvePoint
from kvplan.workloads.requests import Request

Integers = NDArray[np.int64]

# Points between the smallest cache and the one that keeps everything.
_POINTS = 24


@dataclass(frozen=True, slots=True)
class HitCurve:
    """What caches of all sizes would have had.

    Attributes:
        blocks: Whole blocks of all prompts.
        distinct: Different ones.
        distances: Of the ones seen before, how many others were wanted since, ascending.
    """

    blocks: int
    distinct: int
    distances: Integers

    def hit_rate(self, capacity: int) -> float:
        """Share of the blocks that a cache of so many blocks has when they are asked for."""
        if not self.blocks:
            return 0.0
        return int(np.searchsorted(self.distances, capacity, side="left")) / self.blocks

    @property
    def reuse(self) -> float:
        """Share that a cache without limit has."""
        return len(self.distances) / self.blocks if self.blocks else 0.0

    def points(self, block_bytes: int, marks: Sequence[int] = ()) -> tuple[CurvePoint, ...]:
        """Sizes from one that hardly helps to one that keeps everything, and ``marks``."""
        most = max(2, self.distinct)
        spaced = np.unique(np.geomspace(max(1, most // 4096), most, _POINTS).astype(np.int64))
        sizes = sorted({*(int(size) for size in spaced), *marks})
        return tuple(
            CurvePoint(blocks=size, bytes=size * block_bytes, hit_rate=self.hit_rate(size))
            for size in sizes
        )


def hit_curve(requests: Iterable[Request], block_tokens: int) -> HitCurve:
    """The curve of prompts that come one after the other.

    Args:
        requests: In order of arrival.
        block_tokens: Tokens of a block; blocks that a prompt fills only in part are not shared.
    """
    references, deeper = _references(requests, block_tokens)
    # Blocks of the same prompt were not yet referenced when all of them were looked up.
    distances = stack_distances(references)
    count = len(references)
    del references
    warm = distances != COLD
    looked_up = distances[warm]
    del distances
    looked_up -= deeper[warm]
    looked_up.sort()
    return HitCurve(blocks=count, distinct=count - len(looked_up), distances=looked_up)


def _references(requests: Iterable[Request], block_tokens: int) -> tuple[Integers, Positions]:
    """Blocks in the order in which they are let go, and how many of the prompt went before."""
    contents = Contents()
    numbers: dict[Chunk, int] = {}
    known = 0
    parts: list[Integers] = [np.empty(0, dtype=np.int64)]
    depths: list[Positions] = [np.empty(0, dtype=np.int32)]
    for request in requests:
        chain = contents.chain(request)
        blocks = request.prompt_tokens // block_tokens
        row = np.empty(blocks, dtype=np.int64)
        for chunk, low, high in chain.parts(0, blocks, block_tokens):
            if chunk not in numbers:
                # A chunk's blocks are numbered from where it starts, so that all of them fit.
                numbers[chunk] = known - low
                known += chunk.end // block_tokens - low
            row[low:high] = np.arange(low, high) + numbers[chunk]
        parts.append(row[::-1])
        depths.append(np.arange(blocks, dtype=np.int32))
    return np.concatenate(parts), np.concatenate(depths)
