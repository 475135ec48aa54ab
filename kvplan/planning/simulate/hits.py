"""How much of a prompt is resident already, group by group, as vLLM's coordinator agrees on it.

Source: vLLM 0.33.0, vllm/v1/core/kv_cache_coordinator.py find_longest_cache_hit, and that of each
class in vllm/v1/core/single_type_kv_cache_manager.py.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from kvplan.engines.base import BlockGroup
from kvplan.models.formats import ceil_div
from kvplan.planning.simulate.content import Chain, Chunk
from kvplan.planning.simulate.runs import covered


def first_kept(group: BlockGroup, computed: int) -> int:
    """The first block that a request still needs of a group after ``computed`` tokens."""
    if group.keeps == "window":
        return max(0, computed - group.span + 1) // group.block_tokens
    if group.keeps == "chunk":
        return computed // group.span * group.span // group.block_tokens
    return 0


def longest_hit(
    chain: Chain, groups: Sequence[BlockGroup], slots: Sequence[Sequence[int]], at_most: int
) -> int:
    """Tokens that every group has resident, so that a request can start behind them.

    Args:
        chain: What the request consists of.
        groups: The pool's groups; those that keep every token come first.
        slots: For each group, where its resident blocks are looked for.
        at_most: Tokens; the last one of a prompt is always computed.
    """
    step = math.lcm(*(group.block_tokens for group in groups))
    found = at_most // step * step
    while found:
        before = found
        for group, places in zip(groups, slots, strict=True):
            found = _hit(chain, group, places, found) // step * step
        if found == before:
            break
    return found


def _hit(chain: Chain, group: BlockGroup, places: Sequence[int], at_most: int) -> int:
    size = group.block_tokens
    limit = at_most // size
    if group.keeps == "window":
        return _window_hit(chain, group, places, limit) * size
    start = first_kept(group, at_most)
    return _reach(chain, size, places, start, limit) * size


def _reach(chain: Chain, size: int, places: Sequence[int], low: int, high: int) -> int:
    """The end of the resident stretch that begins at block ``low``."""
    at = low
    for chunk, _, last in chain.parts(low, high, size):
        while at < last:
            reached = _covered(chunk, places, at, last)
            if reached == at:
                return at
            at = reached
    return at


def _covered(chunk: Chunk, places: Sequence[int], low: int, high: int) -> int:
    """The end of what one place alone has from ``low`` on; the best place counts."""
    best = low
    for place in places:
        held = chunk.runs.get(place)
        if held:
            best = max(best, covered(held, low, high))
    return best


def _window_hit(chain: Chain, group: BlockGroup, places: Sequence[int], limit: int) -> int:
    """Blocks before the last place where a whole window's blocks are resident."""
    needed = max(1, ceil_div(group.span - 1, group.block_tokens))
    found = 0
    for start, stop in stretches(chain, group.block_tokens, places, 0, limit):
        if start == 0 or stop - start >= needed:
            found = stop
    return found


def stretches(
    chain: Chain, size: int, places: Sequence[int], low: int, high: int
) -> Iterator[tuple[int, int]]:
    """Resident stretches of blocks in order, joined where they touch."""
    start = stop = low
    for chunk, first, last in chain.parts(low, high, size):
        at = first
        while at < last:
            reached = _covered(chunk, places, at, last)
            if reached > at:
                if at > stop:
                    if stop > start:
                        yield start, stop
                    start = at
                elif start == stop:
                    start = at
                stop = at = reached
            else:
                at = _next(chunk, places, at, last)
    if stop > start:
        yield start, stop


def _next(chunk: Chunk, places: Sequence[int], at: int, last: int) -> int:
    """The next block after ``at`` that is resident anywhere, or ``last``."""
    starts = (run.low for place in places for run in chunk.runs.get(place, ()) if run.low > at)
    return min(min(starts, default=last), last)
