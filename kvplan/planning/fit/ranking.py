"""The order of the plans, and which of them none beats."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from kvplan.fit_result import FitPlan

Scores = tuple[float, int, float, float]
Traits = tuple[int, bool, bool]


def scores(plan: FitPlan) -> Scores:
    """Price, GPUs, headroom and time a token, each the smaller the better.

    A price or a time that is not known counts as the worst.
    """
    return (
        math.inf if plan.per_hour is None else plan.per_hour,
        plan.bought.gpus if plan.bought else plan.gpus,
        -plan.headroom,
        plan.speed.tpot_s if plan.speed else math.inf,
    )


def traits(plan: FitPlan) -> Traits:
    """Machines a replica lies on, and whether weights and cache are in another format.

    What these cost (a network's time, accuracy) is not modelled: a plan without them is never
    said to be beaten by one with them.
    """
    return (plan.machines, *plan.changed)


def ranked(plans: Iterable[FitPlan]) -> tuple[tuple[FitPlan, ...], dict[int, int]]:
    """The plans in order, and by rank the rank of the plan that beats each dominated one."""
    ordered = sorted(plans, key=lambda plan: (scores(plan), traits(plan), *_names(plan)))
    frontier: list[tuple[int, tuple[float, ...]]] = []
    done: list[FitPlan] = []
    beaten: dict[int, int] = {}
    for rank, plan in enumerate(ordered, 1):
        own = (*scores(plan), *traits(plan))
        # Whoever beats it is nowhere worse, and so comes before it in this order.
        better = _beats(frontier, own)
        if better is None:
            frontier.append((rank, own))
        else:
            beaten[rank] = better
        done.append(plan.model_copy(update={"rank": rank, "frontier": better is None}))
    return tuple(done), beaten


def _beats(frontier: Sequence[tuple[int, tuple[float, ...]]], own: tuple[float, ...]) -> int | None:
    for rank, other in frontier:
        if all(ours >= theirs for ours, theirs in zip(own, other, strict=True)):
            return rank
    return None


def _names(plan: FitPlan) -> tuple[bool, int, int, str, str, str, str, str]:
    """Among equals the plain layout comes first, then fewer stages and ranks."""
    parallel = plan.parallelism
    return (
        plan.layout != "tensor",
        parallel.pp,
        parallel.tp,
        plan.gpu,
        plan.engine,
        plan.weights,
        plan.kv_dtype,
        plan.layout,
    )
