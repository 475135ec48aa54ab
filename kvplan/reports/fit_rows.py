"""What a search found, in words: all formats but JSON read these."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from kvplan.fit_result import FitPlan, FitResult, LoserGroup, Why, has_catch, is_changed
from kvplan.reports.figures import counted
from kvplan.units import format_count

NOTHING = "-"
_LOST: Mapping[Why, str] = {
    "dominated": "that hold it, no better in anything than another plan",
    "over_budget": "over the budget",
    "no_price": "without a price, so the budget can't be checked",
    "misses_slo": "too slow, whatever the engine does",
    "holds_too_few": "with too few requests on as many GPUs as may be used",
    "request": "without room for one request",
    "weights": "without room for the weights",
    "not_sold": "not for sale like that",
    "refused": "refused",
}
_MOST_GROUPS = 4
_MOST_GPUS = 4


class PlanRow(NamedTuple):
    """One plan's cells."""

    rank: str
    hardware: str
    bought: str
    run: str
    formats: str
    holds: str
    headroom: str
    price: str
    token: str
    first: str
    rate: str
    remarks: str


def headline(found: FitResult) -> str:
    """The answer in a sentence or two: what is recommended, and what is cheaper with a catch."""
    best, recommended = found.best, found.recommended
    if best is None or recommended is None:
        return f"Nothing that was searched holds {load(found)}{_limits(found)}."
    first = "Cheapest" if best.per_hour is not None else "Fewest GPUs"
    if _costs(best) == _costs(recommended):
        said = _with_what(recommended, found)
        said = f", {said}" if said else ""
        return f"{first}: {_paid(recommended, found)}{said}{_unpriced(recommended)}."
    said = _with_what(recommended, found) or "plain"
    return (
        f"Recommended: {_paid(recommended, found)}, {said}{_unpriced(recommended)}. "
        f"{first}: {_in_words(best)}, {_with_what(best, found)}."
    )


def _costs(plan: FitPlan) -> tuple[float | None, int]:
    return plan.per_hour, plan.bought.gpus if plan.bought else plan.gpus


def _paid(plan: FitPlan, found: FitResult) -> str:
    """The hardware, that it holds the load, and for how much."""
    said = f"{hardware(plan)} {_hold(plan)} {load(found)}"
    if plan.per_hour is None:
        return said
    month = format_count(plan.per_hour * found.hours_per_month)
    return f"{said} for {money(plan)} an hour ({month} a month)"


def _unpriced(plan: FitPlan) -> str:
    return "; no price is known" if plan.per_hour is None else ""


def _in_words(plan: FitPlan) -> str:
    price = "" if plan.per_hour is None else f" for {money(plan)} an hour"
    return f"{hardware(plan)}{price}"


def _with_what(plan: FitPlan, found: FitResult) -> str:
    """Formats and catches; empty where formats were not searched and there is no catch."""
    said: list[str] = []
    weights, kv = plan.changed
    if weights or kv:
        words = [f"{plan.weights} weights"] * weights + [f"{plan.kv_dtype} KV cache"] * kv
        said.append(f"with {' and '.join(words)}")
    elif len(found.searched.weights) > 1 or len(found.searched.kv_dtypes) > 1:
        said.append("with weights and cache as they are")
    if plan.machines > 1:
        said.append(f"over {plan.machines} machines that wait for each other")
    if plan.crawls:
        said.append("and it crawls")
    return ", ".join(said)


def _hold(plan: FitPlan) -> str:
    return "holds" if plan.gpus == 1 else "hold"


def load(found: FitResult) -> str:
    """What is asked for."""
    if found.asked.traffic is not None:
        many = found.asked.concurrency
        return f"the traffic {found.asked.traffic}" + (
            f", {counted(many, 'request')} at once" if many else ""
        )
    requests = counted(found.asked.concurrency or 1, "request")
    return f"{requests} of {counted(found.asked.context, 'token')}"


def _limits(found: FitResult) -> str:
    asked = found.asked
    given = (asked.budget_per_hour, asked.tpot_s, asked.ttft_s)
    return " within the limits" if any(limit is not None for limit in given) else ""


def hardware(plan: FitPlan) -> str:
    """GPUs that are used."""
    return f"{plan.gpus} × {plan.gpu}"


def bought(plan: FitPlan) -> str:
    """What is paid for, where it is not just the GPUs."""
    paid = plan.bought
    if paid is None or paid.name == plan.gpu:
        return ""
    return f"{paid.count} × {paid.name}"


def money(plan: FitPlan) -> str:
    """The price of an hour."""
    price = plan.per_hour
    if price is None or plan.bought is None:
        return NOTHING
    return f"{price:,.2f} {plan.bought.currency}"


def run(plan: FitPlan) -> str:
    """How it is run: engine and parallel sizes."""
    parallel = plan.parallelism
    sizes = (("tp", parallel.tp), ("pp", parallel.pp), ("dp", parallel.dp))
    spread = " ".join(f"{name} {size}" for name, size in sizes if size > 1)
    layout = {"tensor": "", "expert": "experts apart", "attention": "attention apart"}[plan.layout]
    return ", ".join(part for part in (plan.engine, spread, layout) if part)


def formats(plan: FitPlan) -> str:
    """Formats of weights and cache."""
    return f"weights {plan.weights}, KV {plan.kv_dtype}"


def plan_rows(plans: Sequence[FitPlan]) -> tuple[PlanRow, ...]:
    """The cells of each plan."""
    return tuple(
        PlanRow(
            rank=str(plan.rank),
            hardware=hardware(plan),
            bought=bought(plan),
            run=run(plan),
            formats=formats(plan),
            holds=format_count(plan.held),
            headroom=f"+{plan.headroom:.0%}",
            price=money(plan),
            token=f"{milliseconds(plan.speed.tpot_s)}" if plan.speed else NOTHING,
            first=f"{seconds(plan.speed.ttft_s)}" if plan.speed else NOTHING,
            rate=format_count(plan.speed.tokens_per_s) if plan.speed else NOTHING,
            remarks="; ".join(plan.remarks),
        )
        for plan in plans
    )


def milliseconds(time_s: float) -> str:
    """Milliseconds with as many digits as say something."""
    time = 1000 * time_s
    return f"{time:,.1f} ms" if time < 100 else f"{time:,.0f} ms"


def seconds(time_s: float) -> str:
    """Seconds likewise."""
    return f"{time_s:,.2f} s" if time_s < 10 else f"{time_s:,.0f} s"


class Listing(NamedTuple):
    """Plans under one title."""

    title: str
    plans: tuple[FitPlan, ...]


AS_THEY_ARE = "With weights and cache as they are"
CHANGED = "With weights or cache in another format, which costs accuracy"


def listings(found: FitResult, top: int) -> tuple[Listing, ...]:
    """The plans to show: those that none beats, then the next best; in order.

    Plans that change a format stand apart: what that costs is not in any figure.
    """
    plain = [plan for plan in found.plans if not is_changed(plan, found.searched)]
    other = [plan for plan in found.plans if is_changed(plan, found.searched)]
    if not plain or not other:
        return (Listing("", _first(found, found.plans, top)),) if found.plans else ()
    least = min(top // 2, len(other))
    first = _first(found, plain, top - least)
    return tuple(
        Listing(title, plans)
        for title, plans in (
            (AS_THEY_ARE, first),
            (CHANGED, _first(found, other, top - len(first))),
        )
        if plans
    )


def shown(found: FitResult, top: int) -> tuple[FitPlan, ...]:
    """All of them, without titles."""
    return tuple(plan for listing in listings(found, top) for plan in listing.plans)


def _first(found: FitResult, plans: Sequence[FitPlan], top: int) -> tuple[FitPlan, ...]:
    """The recommended one if it is among them, then the frontier, then the next best."""
    wanted = [plan for plan in plans if plan is found.recommended]
    wanted += [plan for plan in plans if plan.frontier and plan is not found.recommended]
    wanted += [plan for plan in plans if not plan.frontier and plan is not found.recommended]
    return tuple(sorted(wanted[:top], key=lambda plan: plan.rank))


def by_gpu(found: FitResult) -> tuple[FitPlan, ...]:
    """The best plan of each GPU, in order: one without a catch where there is one."""
    best: dict[str, FitPlan] = {}
    for plan in sorted(found.plans, key=lambda plan: has_catch(plan, found.searched)):
        best.setdefault(plan.gpu, plan)
    return tuple(sorted(best.values(), key=lambda plan: plan.rank))


def in_short(plan: FitPlan) -> str:
    """A plan in one line."""
    (row,) = plan_rows((plan,))
    price = "" if row.price == NOTHING else f", {row.price} an hour"
    paid = f" on {row.bought}" if row.bought else ""
    crawls = " (crawls)" if plan.crawls else ""
    token = "speed not known" if row.token == NOTHING else f"{row.token} a token{crawls}"
    return (
        f"{row.hardware}{paid} ({row.run}; {row.formats}): holds {row.holds}{price}, "
        f"{token}, plan {row.rank}"
    )


def searched(found: FitResult) -> str:
    """How much was looked at, and among what."""
    search = found.searched
    return (
        f"{format_count(search.candidates)} configurations of "
        f"{counted(len(search.gpus), 'GPU')}, {', '.join(search.engines)}; weights "
        f"{', '.join(search.weights)}; KV {', '.join(search.kv_dtypes)}; up to "
        f"{counted(search.max_gpus, 'GPU')}. {format_count(len(found.plans))} kinds hold it, "
        f"{format_count(len(found.frontier))} of them unbeaten."
    )


def why_lost(found: FitResult) -> Iterator[tuple[str, tuple[str, ...]]]:
    """A sentence a reason, with what can be said of its groups."""
    by_why: dict[Why, list[LoserGroup]] = {}
    for group in found.groups:
        by_why.setdefault(group.why, []).append(group)
    for why, groups in by_why.items():
        count = sum(group.count for group in groups)
        parts = [_of_group(group, found) for group in groups[:_MOST_GROUPS]]
        if len(groups) > _MOST_GROUPS:
            left = sum(group.count for group in groups[_MOST_GROUPS:])
            parts.append(
                f"{format_count(left)} for {counted(len(groups) - _MOST_GROUPS, 'other reason')}"
            )
        yield f"{format_count(count)} {_LOST[why]}", tuple(parts)


def _of_group(group: LoserGroup, found: FitResult) -> str:
    near, gpus = group.nearest, _gpus(group.gpus, found)
    if group.why == "dominated":
        return f"{format_count(group.count)}: {near.message[:1].lower()}{near.message[1:]}"
    if group.why in ("refused", "not_sold", "no_price"):
        engines = f", {', '.join(group.engines)}" if len(found.searched.engines) > 1 else ""
        return f"{format_count(group.count)} ({gpus}{engines}): {near.message}"
    sizes = (("tp", near.tp), ("pp", near.pp), ("dp", near.dp))
    spread = " ".join(f"{name} {size}" for name, size in sizes if size > 1)
    how = ", ".join(
        part
        for part in (near.engine, spread, f"weights {near.weights}, KV {near.kv_dtype}")
        if part
    )
    return f"{gpus}. Nearest: {near.gpu} ({how}): {near.message}"


def _gpus(gpus: Sequence[str], found: FitResult) -> str:
    if 1 < len(gpus) == len(found.searched.gpus):
        return "every GPU"
    if len(gpus) <= _MOST_GPUS:
        return ", ".join(gpus)
    return f"{', '.join(gpus[: _MOST_GPUS - 1])} and {len(gpus) - _MOST_GPUS + 1} more"


def prices_said(plans: Sequence[FitPlan]) -> tuple[str, ...]:
    """Where the shown prices come from, and when they held."""
    said: list[str] = []
    for plan in plans:
        paid = plan.bought
        if paid is not None and paid.per_hour is not None:
            place = f", {paid.region}" if paid.region else ""
            said.append(
                f"Prices of {paid.date}{place}: {paid.source}. --prices FILE replaces them."
            )
    return tuple(dict.fromkeys(said))


def size_words(plan: FitPlan, found: FitResult) -> tuple[str, ...]:
    """The `kvplan size` command line that shows the whole plan."""
    words = ["kvplan", "size", found.model, "--gpu", plan.gpu]
    if plan.engine != "vllm":
        words += ["--engine", plan.engine]
    parallel = plan.parallelism
    for name, size in (("--tp", parallel.tp), ("--pp", parallel.pp), ("--dp", parallel.dp)):
        if size > 1:
            words += [name, str(size)]
    for name, value in (("--weights", plan.weights), ("--kv-dtype", plan.kv_dtype)):
        if value != "auto":
            words += [name, value]
    words += ["--context", str(found.asked.context)]
    if found.asked.concurrency is not None:
        words += ["--concurrency", str(found.asked.concurrency)]
    for option, setting in plan.options.items():
        text = str(setting).lower() if isinstance(setting, bool) else str(setting)
        words += ["-o", f"{option}={text}"]
    return tuple(words)


def commands(found: FitResult) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Titles and `kvplan size` lines: of the recommended plan, and of the first."""
    best, recommended = found.best, found.recommended
    if best is None or recommended is None:
        return
    if recommended is not best:
        title = f"The whole recommended plan ({recommended.rank})"
        yield title, size_words(recommended, found)
    if recommended is best or _costs(best) != _costs(recommended):
        yield "The whole plan of the first", size_words(best, found)
