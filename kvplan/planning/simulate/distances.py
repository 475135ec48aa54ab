"""LRU stack distances of a long list of references, all at once with numpy.

The stack distance of a reference is how many distinct blocks were referenced since the same block
was last: an LRU cache of more blocks than that has it. One pass gives every capacity (Mattson and
others, Evaluation techniques for storage hierarchies, IBM Systems Journal 9(2), 1970).

Of the references between the last one to a block (at ``p``) and this one (at ``i``), those count
whose own last reference lies before ``p``. The others lie after ``p`` themselves, so they are
just the earlier references with a later ``p``: inversions of a permutation, which are counted bit
by bit from the top, in the manner of a wavelet tree.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Positions = NDArray[np.int32]

COLD = -1
# Elements of 2^13 fit the cache next to a core with all that a level needs.
_CACHED_BITS = 13


def stack_distances(references: Integers) -> Integers:
    """For each reference its stack distance, or `COLD` where the block was never referenced.

    Args:
        references: Which block, in order of time; shape (n,), any integers; n below 2^31.

    Returns:
        Shape (n,).
    """
    before = _previous(references)
    warm = before != COLD
    last = before[warm]
    del before
    inside = _inversions(_ranks(last, len(references)))
    distances = np.full(len(references), COLD, dtype=np.int64)
    here = np.flatnonzero(warm)
    here -= last
    here -= 1
    here -= inside
    distances[warm] = here
    return distances


def _previous(references: Integers) -> Positions:
    """Where each block was referenced before, or `COLD`."""
    order = np.argsort(references, kind="stable").astype(np.int32)
    ordered = references[order]
    same = np.flatnonzero(ordered[1:] == ordered[:-1])
    del ordered
    before = np.full(len(references), COLD, dtype=np.int32)
    before[order[same + 1]] = order[same]
    return before


def _ranks(values: Positions, limit: int) -> Positions:
    """Distinct values below ``limit`` as a permutation of 0 to their number."""
    seen = np.zeros(limit, dtype=np.int32)
    seen[values] = 1
    np.cumsum(seen, out=seen)
    seen -= 1
    ranks: Positions = seen[values]
    return ranks


def _inversions(permutation: Positions) -> Positions:
    """For each element, how many larger ones stand before it; shape (m,)."""
    bits = max(0, len(permutation) - 1).bit_length()
    values, counts = permutation, np.zeros(len(permutation), dtype=np.int32)
    for bit in range(bits - 1, _CACHED_BITS - 1, -1):
        values, counts = _parted(values, counts, bit)
    # What agrees in the bits above stands together and is small enough for the processor's cache.
    size = 1 << _CACHED_BITS
    for start in range(0, len(permutation), size):
        part, sums = values[start : start + size] - start, counts[start : start + size]
        for bit in range(min(bits, _CACHED_BITS) - 1, -1, -1):
            part, sums = _parted(part, sums, bit)
        counts[start : start + size] = sums
    # They are in order of value now.
    found: Positions = counts[permutation]
    return found


def _parted(values: Positions, counts: Positions, bit: int) -> tuple[Positions, Positions]:
    """One level: of elements that agree in the bits above, zeros move in front of the ones.

    A zero counts the ones that stood before it among these; all else keeps its order.
    """
    count, size = len(values), 1 << (bit + 1)
    ones = (values >> bit) & 1
    inside = np.cumsum(ones, dtype=np.int32)
    inside -= ones
    inside -= np.repeat(inside[::size], size)[:count]
    zeros = ones == 0
    del ones
    counts = counts + np.where(zeros, inside, 0)
    where = np.arange(count, dtype=np.int32)
    place = np.where(zeros, where - inside, (where | (size - 1)) - (size >> 1) + 1 + inside)
    del where, inside, zeros
    moved, following = np.empty_like(values), np.empty_like(counts)
    moved[place] = values
    following[place] = counts
    return moved, following
