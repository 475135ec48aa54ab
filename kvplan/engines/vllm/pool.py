"""From bytes to blocks, tokens and concurrency: what vLLM logs, and whether it would start."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from kvplan.engines.vllm.groups import Group
from kvplan.engines.vllm.history import Rules
from kvplan.engines.vllm.pages import blocks_held, shared_by, still_grows


@dataclass(frozen=True)
class Pool:
    """The groups with everything that their arithmetic needs.

    Attributes:
        stage_block_bytes: Bytes of one block on each pipeline stage's ranks.
        blocks_override: num_gpu_blocks_override, or None.
    """

    groups: tuple[Group, ...]
    rules: Rules
    in_flight: int
    dcp: int
    blocks_override: int | None

    @cached_property
    def stage_block_bytes(self) -> tuple[int, ...]:
        """On each stage, a block holds one page of each layer of the widest group."""
        stages = range(len(self.groups[0].stage_bytes))
        return tuple(max(g.stage_bytes[stage] for g in self.groups) for stage in stages)

    def request_blocks(self, length: int) -> int:
        """Worst-case blocks one request of ``length`` tokens holds, over all groups."""
        return sum(
            blocks_held(group.page, length, in_flight=self.in_flight, dcp=self.dcp)
            for group in self.groups
        )

    def blocks(self, available: Sequence[int]) -> int:
        """Blocks that fit on every stage; ``available`` is bytes by stage."""
        if self.blocks_override is not None:
            return self.blocks_override
        return max(
            0,
            min(
                bytes_ // block
                for bytes_, block in zip(available, self.stage_block_bytes, strict=True)
                if block
            ),
        )

    def usable_blocks(self, available: Sequence[int]) -> int:
        """Blocks that admission counts with. An override takes the place of the memory.

        Source: vLLM 0.33.0, get_kv_cache_configs in vllm/v1/core/kv_cache_utils.py.
        """
        reserved = 1 if self.rules.null_block_reserved else 0
        return max(0, self.blocks(available) - reserved)

    def concurrency(self, blocks: int, length: int) -> float:
        """What the log calls maximum concurrency.

        Up to 0.26 a request's bytes over all groups were rounded up once instead; the pages of
        all groups are equal there, so it is the same number.
        """
        if self.rules.tokens == "blocks":
            return self.tokens(blocks, length) / length
        return blocks / self.request_blocks(length)

    def tokens(self, blocks: int, length: int) -> int:
        """What the log calls GPU KV cache size."""
        if self.rules.tokens == "concurrency":
            return int(self.concurrency(blocks, length) * length)
        smallest = min(group.page.block_size for group in self.groups)
        if self.rules.tokens == "blocks":
            return blocks * smallest
        return blocks // len(self.groups) * smallest * self.dcp

    def longest(self, usable: int, at_most: int) -> int:
        """The longest single request that ``usable`` blocks hold, or 0. Bisection, as vLLM's."""
        if self.request_blocks(at_most) <= usable:
            return at_most
        if self.request_blocks(1) > usable:
            return 0
        low, high = 1, at_most - 1
        while low < high:
            middle = (low + high + 1) // 2
            if self.request_blocks(middle) <= usable:
                low = middle
            else:
                high = middle - 1
        return low

    def growth(self, length: int, stage: int) -> float:
        """Bytes one more token adds on a rank of ``stage``, averaged over a block."""
        block_bytes = self.stage_block_bytes[stage]
        return sum(
            block_bytes / (group.page.block_size * shared_by(group.page, self.dcp))
            for group in self.groups
            if still_grows(group.page, length, in_flight=self.in_flight)
        )

    def group_blocks(self, group: Group, length: int) -> int:
        """Blocks of one group that a request of ``length`` tokens holds."""
        return blocks_held(group.page, length, in_flight=self.in_flight, dcp=self.dcp)


def whole_requests(pool: Pool, blocks: int, length: int, *, max_num_seqs: int) -> int:
    """Requests of ``length`` tokens that one replica really holds: the null block holds nobody."""
    held_back = 0 if pool.rules.v0 else 1
    return min(max_num_seqs, max(0, blocks - held_back) // pool.request_blocks(length))
