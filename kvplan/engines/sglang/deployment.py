"""A prepared SGLang configuration, and the figures it gives for a length of request."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from kvplan.engines.base import Answer, Figures, PoolUnits, ReplicaPools
from kvplan.engines.sglang import answer as answers
from kvplan.engines.sglang import drafts, ledgers, pools, sizes
from kvplan.engines.sglang.frame import Frame
from kvplan.engines.sglang.memory import RankMemory
from kvplan.engines.sglang.sizes import Sizes, Sizing
from kvplan.ledger import Draft
from kvplan.plan import Parallelism


@dataclass(frozen=True)
class SglangDeployment:
    """A prepared configuration (see `kvplan.engines.base.Prepared`).

    Attributes:
        sizing: Rows and rules of the pools.
        ranks: One rank's memory by pipeline stage, or None where the bytes were given.
        available: Bytes for the pools on every rank.
        uneven: Other programs hold so much of one card only that SGLang refuses to start.
    """

    frame: Frame
    parallelism: Parallelism
    sizing: Sizing
    ranks: tuple[RankMemory, ...] | None
    available: int
    uneven: bool = False

    @property
    def used_by_others(self) -> int:
        """Bytes that other programs hold on the fullest card; 0 where the budget was given."""
        return self.ranks[0].used_by_others if self.ranks else 0

    @property
    def idle(self) -> SglangDeployment:
        """The same configuration on cards that nobody else uses."""
        if self.ranks is None:
            return self
        ranks = tuple(rank.idle for rank in self.ranks)
        available = min(rank.available for rank in ranks)
        return replace(self, ranks=ranks, available=available, uneven=False)

    @cached_property
    def sizes(self) -> Sizes:
        """The pools of one group."""
        return sizes.solve(self.sizing, self.available)

    @cached_property
    def low(self) -> int | None:
        """Bytes for the pools if more is taken before loading; None: no range."""
        return min(rank.low for rank in self.ranks) if self.ranks else None

    @cached_property
    def high(self) -> int | None:
        """Bytes for the pools if less is taken before loading; None: no range."""
        return min(rank.high for rank in self.ranks) if self.ranks else None

    @cached_property
    def token_range(self) -> tuple[int, int] | None:
        """Fewest and most tokens between `low` and `high`; None: no range."""
        if self.low is None or self.high is None:
            return None
        fewest, most = sizes.token_range(self.sizing, self.low, self.high)
        return min(fewest, self.sizes.tokens), max(most, self.sizes.tokens)

    @cached_property
    def fullest(self) -> int:
        """The stage whose rank has the least left beside weights and pools."""

        def left(stage: int) -> int:
            spent = self.ranks[stage].spent if self.ranks else 0
            return -spent - sizes.allocated(self.sizing, self.sizes, stage)

        return min(range(len(self.sizing.stages)), key=left)

    @cached_property
    def table(self) -> Draft:
        """The table that maps a request to its tokens, which no budget counts."""
        settings, rules = self.frame.settings, self.frame.rules
        row = drafts.row_tokens(settings, context=self.frame.context, page=self.frame.page)
        return Draft(
            "req_to_token",
            "outside",
            "(requests + padding) * row_tokens * int32_bytes",
            {
                "requests": self.sizes.requests,
                "padding": rules.table_padding,
                "row_tokens": row,
                "int32_bytes": pools.INT32,
            },
            source="SGLang 0.5.23, memory_pool.py ReqToTokenPool",
            confidence="exact",
        )

    @cached_property
    def slack_left(self) -> int | None:
        """Bytes of the dynamic share for activations; None where the pools' bytes were given."""
        if self.ranks is None:
            return None
        return ledgers.slack(self).value()

    @cached_property
    def limit(self) -> int:
        """The longest context the model itself allows, or what was asked where it is longer."""
        return max(self.frame.setup.model.max_context or 0, self.frame.setup.context or 1)

    def longest_context(self) -> int:
        """The longest request that one group takes, at most the model's own maximum."""
        return sizes.longest(self.sizing, self.sizes, self.limit)

    @property
    def comes_up(self) -> bool:
        """Whether the server lives to serve: ranks alike, and what is beside the pools paid for."""
        return not self.uneven and (self.slack_left is None or self.slack_left >= 0)

    def requests(self, found: Sizes, context: int) -> int:
        """Whole requests over the deployment; none where the server does not come up."""
        if not self.comes_up:
            return 0
        held = sizes.held(self.sizing, found, context)
        return held * self.frame.settings.dp_size * self.parallelism.dp

    def figures(self, context: int) -> Figures:
        """Capacity for requests of ``context`` tokens."""
        longest = self.longest_context()
        return Figures(
            blocks=self.sizes.tokens // self.frame.page,
            tokens=self.sizes.tokens,
            max_concurrency=sizes.concurrency(self.sizing, self.sizes, context),
            max_context=longest,
            requests=self.requests(self.sizes, context),
            starts=longest >= context and self.comes_up,
        )

    def answer(self, context: int, concurrency: int | None) -> Answer:
        """The full answer for ``concurrency`` requests of ``context`` tokens."""
        return answers.build(self, context, concurrency)

    def pools(self, context: int) -> ReplicaPools:  # noqa: ARG002  the same for every length
        """Pages of tokens, and tokens of windows and slots of states where there are any."""
        found, page = self.sizes, self.frame.page
        need = sizes.need_of(self.sizing, 1)
        pools = [PoolUnits("kv", "page", found.tokens // page)]
        if need.window_tokens:
            pools.append(PoolUnits("windows", "token", found.window_tokens))
        if need.slots:
            pools.append(PoolUnits("states", "slot", found.slots))
        return ReplicaPools(
            pools=tuple(pools),
            sequences=found.requests,
            replicas=self.frame.settings.dp_size * self.parallelism.dp,
            step=page,
        )

    def request_units(self, tokens: int) -> tuple[int, ...]:
        """Pages, tokens of windows and slots that a request holds at most while it decodes."""
        need = sizes.need_of(self.sizing, tokens)
        return (need.pages, *(part for part in (need.window_tokens, need.slots) if part))

    def own_units(self, tokens: int, shared: int) -> tuple[int, ...]:
        """The same without the pages of the radix cache that others hold too.

        Windows and states are counted as its own.
        """
        pages, *rest = self.request_units(tokens)
        kept = 0 if self.frame.settings.disable_radix_cache else shared // self.frame.page
        return (pages - min(pages, kept), *rest)
