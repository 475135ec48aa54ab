"""A prepared vLLM configuration, and the figures it gives for a length of request."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from kvplan.engines.base import Answer, BlockPool, Figures, PoolUnits, ReplicaPools, Setup
from kvplan.engines.vllm import answer as answers
from kvplan.engines.vllm import decoding, scheduling
from kvplan.engines.vllm.memory import OTHERS, RankMemory
from kvplan.engines.vllm.pool import Pool, whole_requests
from kvplan.engines.vllm.settings import Settings
from kvplan.hardware import DeviceMemory
from kvplan.models.formats import Dtype
from kvplan.plan import Parallelism


@dataclass(frozen=True)
class VllmDeployment:
    """A prepared configuration (see `kvplan.engines.base.Prepared`).

    Attributes:
        pool: Groups and the arithmetic over them.
        stages: One rank's memory by pipeline stage, or None where the bytes were given.
        available: Bytes for the cache by pipeline stage.
    """

    setup: Setup
    version: str
    dtype: Dtype
    kv_dtype: str
    settings: Settings
    device: DeviceMemory
    sm: tuple[int, int]
    parallelism: Parallelism
    pool: Pool
    stages: tuple[RankMemory, ...] | None
    available: tuple[int, ...]

    @cached_property
    def low(self) -> tuple[int, ...] | None:
        """Bytes for the cache by stage if runtime memory is at its high end; None: no range."""
        return tuple(rank.low for rank in self.stages) if self.stages and self.ranged else None

    @cached_property
    def high(self) -> tuple[int, ...] | None:
        """Bytes for the cache by stage if runtime memory is at its low end; None: no range."""
        return tuple(rank.high for rank in self.stages) if self.stages and self.ranged else None

    @property
    def ranged(self) -> bool:
        """Whether the cache is what fitted runtime memory leaves, not what somebody gave."""
        return self.stages is not None and self.settings.kv_cache_memory_bytes is None

    @cached_property
    def blocks(self) -> int:
        """Blocks of one replica."""
        return self.pool.blocks(self.available)

    @cached_property
    def fullest(self) -> int:
        """The stage that runs out first: fewest blocks, then fewest bytes to spare."""
        stage_blocks = self.pool.stage_block_bytes

        def key(stage: int) -> tuple[float, int]:
            block = stage_blocks[stage]
            left = self.available[stage]
            return (left / block if block else float("inf"), left)

        return min(range(len(self.available)), key=key)

    @cached_property
    def outside_left(self) -> int:
        """Bytes that the utilization leaves beside what the budget does not count.

        A pool of given size knows no utilization: 0.
        """
        if self.stages is None or not self.ranged:
            return 0
        rank = self.stages[self.fullest]
        return rank.device.total - rank.requested - rank.beside

    @property
    def used_by_others(self) -> int:
        """Bytes that other programs hold on a rank's card."""
        outside = self.stages[self.fullest].outside if self.stages else ()
        return sum(draft.value() for draft in outside if draft.name == OTHERS)

    @property
    def uncovered(self) -> tuple[str, ...]:
        """What of this start no measured one had, in words; nothing where the bytes were given."""
        return self.stages[self.fullest].coverage.beyond if self.stages else ()

    @property
    def calibrated_on(self) -> str:
        """Releases of the starts that runtime memory was fitted on; empty where none is planned."""
        return self.stages[self.fullest].coverage.releases if self.stages else ""

    @cached_property
    def left(self) -> int:
        """Bytes of the cache's memory beyond whole blocks, on the rank that has the least.

        Negative where the pool is given (kv_cache_memory_bytes, num_gpu_blocks_override) and
        larger than what there is for it.
        """
        return min(self._left(stage) for stage in range(len(self.available)))

    def _left(self, stage: int) -> int:
        pool = self.blocks * self.pool.stage_block_bytes[stage]
        if self.stages is None or self.ranged:
            return self.available[stage] - pool
        rank = self.stages[stage]
        return rank.device.total - rank.spent - rank.beside - pool

    @cached_property
    def limit(self) -> int:
        """The longest context the model itself allows, or what was asked where it is longer."""
        model_limit = self.setup.model.max_context or 0
        return max(model_limit, self.setup.context or 1)

    def longest_context(self) -> int:
        """The longest request the pool holds, at most the model's own maximum."""
        return self.pool.longest(self.pool.usable_blocks(self.available), self.limit)

    def requests(self, blocks: int, context: int) -> int:
        """Whole requests over the deployment."""
        seqs = self.settings.max_num_seqs
        held = whole_requests(self.pool, blocks, context, max_num_seqs=seqs)
        return held * self.parallelism.dp

    def figures(self, context: int) -> Figures:
        """Capacity for requests of ``context`` tokens."""
        blocks = self.blocks
        longest = self.longest_context()
        return Figures(
            blocks=blocks,
            tokens=self.pool.tokens(blocks, context),
            max_concurrency=self.pool.concurrency(blocks, context),
            max_context=longest,
            requests=self.requests(blocks, context),
            starts=longest >= context and self.left >= 0 and self.outside_left >= 0,
        )

    def block_pool(self) -> BlockPool:
        """The pool as simulations fill it."""
        return scheduling.block_pool(self)

    def answer(self, context: int, concurrency: int | None) -> Answer:
        """The full answer for ``concurrency`` requests of ``context`` tokens."""
        return answers.build(self, context, concurrency)

    def pools(self, context: int) -> ReplicaPools:  # noqa: ARG002  the same for every length
        """The pool of blocks, without the null block."""
        blocks = max(0, self.blocks - (0 if self.pool.rules.v0 else 1))
        return ReplicaPools(
            pools=(PoolUnits("kv", "block", blocks),),
            sequences=self.settings.max_num_seqs,
            replicas=self.parallelism.dp,
            step=math.gcd(*(group.page.block_size for group in self.pool.groups)),
        )

    def request_units(self, tokens: int) -> tuple[int, ...]:
        """Blocks over all groups that a decoding request of ``tokens`` tokens holds at most."""
        in_flight = decoding.tokens_in_flight(self.settings)
        return (decoding.decoding_blocks(self.pool, tokens, in_flight=in_flight),)

    def own_units(self, tokens: int, shared: int) -> tuple[int, ...]:
        """Blocks beside those whose tokens are all shared."""
        if not self.settings.enable_prefix_caching:
            return self.request_units(tokens)
        (held,) = self.request_units(tokens)
        in_flight = decoding.tokens_in_flight(self.settings)
        return (held - decoding.shared_blocks(self.pool, tokens, shared, in_flight=in_flight),)
