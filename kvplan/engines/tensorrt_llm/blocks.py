"""From bytes to blocks, tokens and requests, as TensorRT-LLM's cache manager does it.

Windows of several lengths get equal shares of the memory, however many layers each has
(calculate_max_num_blocks_for_vswa). Source: tensorrt_llm/_torch/pyexecutor/resource_manager.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kvplan.engines.tensorrt_llm.pages import Pool
from kvplan.models.formats import ceil_div


@dataclass(frozen=True, slots=True)
class Sizing:
    """What decides the blocks beside the bytes.

    Attributes:
        stages: Pools of each pipeline stage.
        block: Tokens of a block.
        rounds_up: The last block may be beyond the budget.
        max_tokens, max_bytes: Limits of the options of those names, or None.
        batch: max_batch_size.
    """

    stages: tuple[tuple[Pool, ...], ...]
    block: int
    rounds_up: bool
    max_tokens: int | None
    max_bytes: int | None
    batch: int

    @property
    def windows(self) -> tuple[int, ...]:
        """Windows of all stages, the narrowest first."""
        return tuple(sorted({pool.window for pools in self.stages for pool in pools}))


@dataclass(frozen=True, slots=True)
class Share:
    """Bytes of one rank: what the estimate leaves, and what is really free times the fraction."""

    estimated: int
    free: int


Blocks = dict[int, int]
"""Blocks by window."""


def solve(sizing: Sizing, shares: Sequence[Share]) -> Blocks:
    """Blocks of each window, the least over all ranks."""
    found: Blocks = {}
    for pools, share in zip(sizing.stages, shares, strict=True):
        for window, blocks in _stage(sizing, pools, share).items():
            found[window] = min(blocks, found.get(window, blocks))
    return found


def _stage(sizing: Sizing, pools: tuple[Pool, ...], share: Share) -> Blocks:
    if len(pools) == 1:
        return {pools[0].window: _one_window(sizing, pools[0], share)}
    limit = share.estimated if sizing.max_bytes is None else min(share.estimated, sizing.max_bytes)
    return {
        # Scales of a 4-bit cache are left out of this division.
        pool.window: max(0, limit)
        // len(pools)
        // (pool.token_bytes - pool.scale_bytes)
        // sizing.block
        for pool in pools
    }


def _one_window(sizing: Sizing, pool: Pool, share: Share) -> int:
    budget = share.estimated if sizing.max_bytes is None else min(share.estimated, sizing.max_bytes)
    tokens = min(max(0, budget) // pool.estimated_bytes, max(0, share.free) // pool.token_bytes)
    if sizing.max_tokens is not None:
        tokens = min(tokens, sizing.max_tokens)
    return ceil_div(tokens, sizing.block) if sizing.rounds_up else tokens // sizing.block


def request_blocks(sizing: Sizing, window: int, length: int) -> int:
    """Blocks of one window that a request of ``length`` tokens holds."""
    whole = ceil_div(length, sizing.block)
    # A window that does not begin at a block's start reaches into one more.
    return min(whole, ceil_div(window, sizing.block) + 1) if window < length else whole


def by_memory(sizing: Sizing, blocks: Blocks, length: int) -> int:
    """Requests of ``length`` tokens that the pools hold."""
    return min(held // request_blocks(sizing, window, length) for window, held in blocks.items())


def concurrency(sizing: Sizing, blocks: Blocks, length: int) -> float:
    """The same, not rounded."""
    return min(held / request_blocks(sizing, window, length) for window, held in blocks.items())


def longest(sizing: Sizing, blocks: Blocks, at_most: int) -> int:
    """The longest request that the pools hold, at most ``at_most`` tokens."""
    widest = max(blocks)
    if any(blocks[window] < ceil_div(window, sizing.block) for window in blocks if window < widest):
        return 0
    return min(at_most, blocks[widest] * sizing.block)


def stage_bytes(sizing: Sizing, stage: int) -> int:
    """Bytes of one block of every window on a rank of ``stage``."""
    return sizing.block * sum(pool.token_bytes for pool in sizing.stages[stage])


def allocated(sizing: Sizing, blocks: Blocks, stage: int) -> int:
    """Bytes of all pools on a rank of ``stage``."""
    return sum(
        blocks[pool.window] * sizing.block * pool.token_bytes for pool in sizing.stages[stage]
    )
