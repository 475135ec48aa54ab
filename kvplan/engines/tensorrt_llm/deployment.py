"""A prepared TensorRT-LLM configuration, and the figures it gives for a length of request."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from kvplan.engines.base import Answer, Figures, PoolUnits, ReplicaPools
from kvplan.engines.tensorrt_llm import answer as answers
from kvplan.engines.tensorrt_llm import blocks
from kvplan.engines.tensorrt_llm.blocks import Blocks, Share, Sizing
from kvplan.engines.tensorrt_llm.frame import Frame
from kvplan.engines.tensorrt_llm.memory import RankMemory
from kvplan.plan import Parallelism


@dataclass(frozen=True)
class TensorRtDeployment:
    """A prepared configuration (see `kvplan.engines.base.Prepared`).

    Attributes:
        sizing: Pools and what decides their blocks.
        ranks: One rank's memory by pipeline stage, or None where the bytes were given.
        shares: Bytes for the cache by stage.
    """

    frame: Frame
    parallelism: Parallelism
    sizing: Sizing
    ranks: tuple[RankMemory, ...] | None
    shares: tuple[Share, ...]

    @property
    def used_by_others(self) -> int:
        """Bytes that other programs hold on the fullest card; 0 where the budget was given."""
        return self.ranks[0].used_by_others if self.ranks else 0

    @property
    def idle(self) -> TensorRtDeployment:
        """The same configuration on cards that nobody else uses."""
        if self.ranks is None:
            return self
        ranks = tuple(rank.idle for rank in self.ranks)
        return replace(self, ranks=ranks, shares=tuple(rank.share for rank in ranks))

    @cached_property
    def blocks(self) -> Blocks:
        """Blocks by window of one group of ranks."""
        return blocks.solve(self.sizing, self.shares)

    @cached_property
    def low(self) -> tuple[Share, ...] | None:
        """Bytes by stage if the peak is at its high end; None: no range."""
        return tuple(rank.low for rank in self.ranks) if self.ranks else None

    @cached_property
    def high(self) -> tuple[Share, ...] | None:
        """Bytes by stage if the peak is at its low end; None: no range."""
        return tuple(rank.high for rank in self.ranks) if self.ranks else None

    @cached_property
    def fullest(self) -> int:
        """The stage whose rank runs out first."""

        def left(stage: int) -> float:
            size = blocks.stage_bytes(self.sizing, stage)
            return self.shares[stage].estimated / size if size else float("inf")

        return min(range(len(self.shares)), key=left)

    @property
    def widest(self) -> int:
        """The longest window: that of the full layers."""
        return max(self.blocks)

    @cached_property
    def host_blocks(self) -> int:
        """Blocks of the tier in the host's memory, by the rule for one window."""
        size = self.frame.settings.host_cache_size or 0
        return size // blocks.stage_bytes(self.sizing, self.fullest)

    @cached_property
    def left(self) -> int:
        """Bytes that nothing takes on the fullest rank while max_num_tokens run.

        Negative: the pool starts in memory that the measured run gave back, and a batch of that
        size finds it taken.
        """
        if self.ranks is None:
            return 0
        rank = self.ranks[self.fullest]
        return (
            rank.device.total - rank.peak - blocks.allocated(self.sizing, self.blocks, self.fullest)
        )

    def longest_context(self) -> int:
        """The longest request that the pools hold, at most max_seq_len."""
        limit = self.frame.settings.max_seq_len
        return blocks.longest(self.sizing, self.blocks, limit)

    def requests(self, found: Blocks, context: int) -> int:
        """Whole requests over the deployment; none where its pool takes what a batch needs."""
        if self.left < 0 or context > blocks.longest(
            self.sizing, found, self.frame.settings.max_seq_len
        ):
            return 0
        held = min(self.sizing.batch, blocks.by_memory(self.sizing, found, context))
        return held * self.frame.attention_groups * self.parallelism.dp

    def tokens(self, found: Blocks) -> int:
        """Tokens of the pool of the longest window."""
        return found[max(found)] * self.sizing.block

    def figures(self, context: int) -> Figures:
        """Capacity for requests of ``context`` tokens."""
        longest = self.longest_context()
        return Figures(
            blocks=self.blocks[self.widest],
            tokens=self.tokens(self.blocks),
            max_concurrency=blocks.concurrency(self.sizing, self.blocks, context),
            max_context=longest,
            requests=self.requests(self.blocks, context),
            starts=longest >= context and self.left >= 0,
        )

    def answer(self, context: int, concurrency: int | None) -> Answer:
        """The full answer for ``concurrency`` requests of ``context`` tokens."""
        return answers.build(self, context, concurrency)

    def pools(self, context: int) -> ReplicaPools:  # noqa: ARG002  the same for every length
        """Blocks of each window, the narrowest first."""
        return ReplicaPools(
            pools=tuple(
                PoolUnits("kv" if window == self.widest else f"window {window}", "block", count)
                for window, count in sorted(self.blocks.items())
            ),
            sequences=self.sizing.batch,
            replicas=self.frame.attention_groups * self.parallelism.dp,
            step=self.sizing.block,
        )

    def request_units(self, tokens: int) -> tuple[int, ...]:
        """Blocks of each window that a request of ``tokens`` tokens holds."""
        return tuple(
            blocks.request_blocks(self.sizing, window, tokens) for window in sorted(self.blocks)
        )

    def own_units(self, tokens: int, shared: int) -> tuple[int, ...]:
        """The same without the reused blocks of the widest window; others count as its own."""
        *rest, widest = self.request_units(tokens)
        reuses = self.frame.settings.enable_block_reuse
        kept = shared // self.sizing.block if reuses else 0
        return (*rest, widest - min(widest, kept))
