"""A search from beginning to end: candidates → plans in order, and why the others lost."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from kvplan.errors import RefusedError, UsageError
from kvplan.fit_result import Asked, FitPlan, FitResult, Loser, Searched
from kvplan.models.spec import ModelSpec
from kvplan.planning.fit.bounds import Shares
from kvplan.planning.fit.buying import Market
from kvplan.planning.fit.losers import dominated, grouped
from kvplan.planning.fit.need import Need
from kvplan.planning.fit.ranking import ranked
from kvplan.planning.fit.search import CRAWL_TPOT_S, Limits, Search, Tally
from kvplan.planning.fit.space import Space


@dataclass(frozen=True, slots=True)
class Question:
    """What is searched for, and among what.

    Attributes:
        specs: The model by format of its weights, or why it can't be had in it.
        concurrency, traffic: What is asked, for the record.
    """

    model: str
    space: Space
    need: Need
    market: Market
    limits: Limits
    shares: Shares
    specs: Mapping[str, ModelSpec | RefusedError | UsageError]
    hours_per_month: float
    concurrency: int | None = None
    traffic: str | None = None
    assumed: tuple[str, ...] = ()


def fit(asked: Question, progress: Callable[[int, int], None] | None = None) -> FitResult:
    """Searches.

    Args:
        asked: The question.
        progress: Told how many devices are done, and of how many.
    """
    start, tally = time.monotonic(), Tally()
    search = Search(
        space=asked.space,
        need=asked.need,
        market=asked.market,
        limits=asked.limits,
        shares=asked.shares,
        specs=asked.specs,
        tally=tally,
        progress=progress,
    )
    holding: list[FitPlan] = []
    lost: list[Loser] = []
    for outcome in search.run():
        if isinstance(outcome, FitPlan):
            holding.append(outcome)
        else:
            lost.append(outcome)
    plans, beaten = ranked(holding)
    losers = (*lost, *dominated(plans, beaten))
    return FitResult(
        model=asked.model,
        asked=_asked(asked),
        plans=plans,
        losers=losers,
        groups=grouped(losers),
        searched=_searched(asked, tally, time.monotonic() - start),
        bandwidth_share=asked.shares.bandwidth,
        flops_share=asked.shares.flops,
        hours_per_month=asked.hours_per_month,
        assumed=(*asked.assumed, *_assumed(asked)),
    )


def _asked(asked: Question) -> Asked:
    return Asked(
        context=asked.need.context,
        concurrency=asked.concurrency,
        traffic=asked.traffic,
        budget_per_hour=asked.limits.budget_per_hour,
        tpot_s=asked.limits.tpot_s,
        ttft_s=asked.limits.ttft_s,
    )


def _searched(asked: Question, tally: Tally, seconds: float) -> Searched:
    space = asked.space
    return Searched(
        candidates=tally.candidates,
        prepared=tally.prepared,
        seconds=round(seconds, 3),
        gpus=tuple(gpu.id for gpu in space.gpus),
        engines=tuple(
            choice.engine.name + (f"=={choice.version}" if choice.version else "")
            for choice in space.engines
        ),
        weights=tuple(asked.specs),
        kv_dtypes=tuple(dict.fromkeys(kv for one in space.engines for kv in one.kv_dtypes)),
        gpus_per_node=asked.market.node,
        max_gpus=space.max_gpus,
    )


def _assumed(asked: Question) -> tuple[str, ...]:
    need, shares = asked.need, asked.shares
    node = asked.market.node
    links = "a machine" if node is None else f"a node of {node} GPUs"
    peak = f"{shares.bandwidth:.0%} of a GPU's bandwidth and {shares.flops:.0%} of its arithmetic"
    decoding = f"A token's time is that of all requests decoding at {need.seen:,} tokens"
    other = len(asked.specs) > 1 or any(len(one.kv_dtypes) > 1 for one in asked.space.engines)
    accuracy = (
        "Another format of weights or cache costs accuracy, which is in no figure: try it on your"
        " own prompts. Such a checkpoint has to exist or be made."
    )
    return (
        *((accuracy,) if other else ()),
        f"Times are bounds, at {peak}; launching, communication and queues come on top.",
        f"{decoding}; a prompt's is that of {need.prompt:,} tokens alone.",
        f"A tensor parallel group stays within {links}.",
        f"Crawling is slower than {1 / CRAWL_TPOT_S:.0f} tokens a second: this tool's own line.",
    )
