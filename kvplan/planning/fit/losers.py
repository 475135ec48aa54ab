"""Why the others lost, grouped so that a person can read it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from kvplan.fit_result import FitPlan, Loser, LoserGroup, Why

# In the order of a search: what the engine says, memory, the market, limits, the others.
_ORDER: tuple[Why, ...] = (
    "dominated",
    "over_budget",
    "no_price",
    "misses_slo",
    "holds_too_few",
    "request",
    "weights",
    "not_sold",
    "refused",
)
# Of these more is nearer; of the others less is.
_MORE_IS_NEARER = ("holds_too_few", "request")
_FIGURE = re.compile(r"\d[\d.,]*")


def dominated(plans: Sequence[FitPlan], beaten: Mapping[int, int]) -> Iterable[Loser]:
    """The plans that hold it and that another beats."""
    for rank, better in beaten.items():
        plan = plans[rank - 1]
        yield Loser(
            why="dominated",
            gpu=plan.gpu,
            engine=plan.engine,
            weights=plan.weights,
            kv_dtype=plan.kv_dtype,
            layout=plan.layout,
            tp=plan.parallelism.tp,
            pp=plan.parallelism.pp,
            dp=plan.parallelism.dp,
            message=f"No better in anything than {_short(plans[better - 1])}.",
            figure=float(rank),
            beaten_by=better,
        )


def _short(plan: FitPlan) -> str:
    parallel = plan.parallelism
    sizes = (("tp", parallel.tp), ("pp", parallel.pp), ("dp", parallel.dp))
    spread = "".join(f" {name}{size}" for name, size in sizes if size > 1)
    return (
        f"plan {plan.rank}: {plan.gpus} × {plan.gpu}{spread}, {plan.engine}, "
        f"weights {plan.weights}, KV {plan.kv_dtype}"
    )


def grouped(losers: Iterable[Loser]) -> tuple[LoserGroup, ...]:
    """Losers with the same reason together: figures in its sentence do not tell them apart."""
    groups: dict[tuple[object, ...], list[Loser]] = {}
    for loser in losers:
        groups.setdefault(_key(loser), []).append(loser)
    found = [_group(members) for members in groups.values()]
    return tuple(sorted(found, key=lambda group: (_ORDER.index(group.why), -group.count)))


def _key(loser: Loser) -> tuple[object, ...]:
    if loser.why == "dominated":
        return (loser.why, loser.beaten_by)
    if loser.why in ("refused", "not_sold", "no_price"):
        return (loser.why, _FIGURE.sub("#", loser.message))
    return (loser.why,)


def _group(members: Sequence[Loser]) -> LoserGroup:
    nearest = min(members, key=_distance)
    return LoserGroup(
        why=nearest.why,
        message=nearest.message,
        count=len(members),
        gpus=tuple(sorted({loser.gpu for loser in members})),
        engines=tuple(sorted({loser.engine for loser in members})),
        nearest=nearest,
    )


def _distance(loser: Loser) -> tuple[float, int]:
    figure = loser.figure or 0.0
    return (-figure if loser.why in _MORE_IS_NEARER else figure, loser.tp * loser.pp * loser.dp)
