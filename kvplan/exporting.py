"""`book_of`: a plan with what a reader may change of it, for workbooks and pages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from kvplan import api
from kvplan.asked import Asked, engine_of
from kvplan.errors import KvplanError, UsageError, shown
from kvplan.hardware import GpuSpec
from kvplan.host_profile import HostProfile
from kvplan.models.spec import ModelSpec
from kvplan.plan import Advice, Plan
from kvplan.plan_book import Alternative, Economics, PlanBook, RealTraffic, Rung
from kvplan.planning import request_rule
from kvplan.planning.request_rule import Asked as Askable
from kvplan.planning.size import resolve_context
from kvplan.planning.traffic.answer import Question, answer_with_curve
from kvplan.sources.gpus import find_gpus

# Of a plan's advice: more than these in a table are not compared any more.
MOST_ALTERNATIVES = 8
_PRICE = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)(?:\s*([A-Z]{3}))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Price:
    """What one GPU costs an hour, as its user knows it."""

    per_gpu_hour: float
    currency: str = "USD"
    source: str = "given on the command line"


def parse_price(text: str) -> Price:
    """Reads ``2.50`` or ``2.10 EUR``: what one GPU costs an hour.

    Raises:
        UsageError: it is neither.
    """
    match = _PRICE.fullmatch(text.strip())
    if match is None:
        raise UsageError(
            f"{shown(text)} is not a price.", hint="Write 2.50 or '2.10 EUR'.", location="--price"
        )
    return Price(float(match[1]), match[2] or "USD")


def book_of(
    model: str | ModelSpec,
    asked: Asked,
    host: HostProfile | None = None,
    *,
    price: Price | None = None,
    traffic: Question | None = None,
    offline: bool = False,
) -> PlanBook:
    """Plans a configuration and works out what a reader can change of it.

    Args:
        model: As in `kvplan.size`.
        asked: Its other arguments, checked (`kvplan.asked.asked_of`).
        host: What was measured on the machine that is planned for.
        price: Of a GPU; the reader can fill it in.
        traffic: Real traffic that the plan is held against.
        offline: Use bundled specs and the local cache only.

    Raises:
        KvplanError: see `kvplan.size`.
    """
    plan, resolved = api.planned(model, asked, host, offline=offline)
    economics = economics_of(asked.gpu, price)
    if resolved is None or plan.capacity is None:
        return PlanBook(plan, None, (), (), (), economics)
    setup = resolved.setup
    longest = max(resolve_context(setup.model, None, unstated=setup.context), setup.context or 1)
    askable = Askable(asked.engine.planner(), setup, plan, longest)
    rule = request_rule.find_rule(askable)
    spec = model if isinstance(model, ModelSpec) else setup.model
    bound = _shares_experts(askable)
    return PlanBook(
        plan=plan,
        rule=rule,
        moving=request_rule.moving_inputs(askable, rule) if rule else (),
        rungs=request_rule.rungs(askable, rule),
        alternatives=tuple(_alternatives(spec, asked, host, plan, offline=offline)),
        economics=economics,
        unit_replicas=plan.parallelism.dp if bound else 1,
        shares_experts=bound,
        traffic=None if traffic is None else _traffic(askable, longest, traffic),
    )


def _traffic(asked: Askable, longest: int, traffic: Question) -> RealTraffic:
    setup = asked.setup
    context = resolve_context(setup.model, setup.context)
    prepared = asked.engine.prepare(setup)
    plan, curve = answer_with_curve(prepared, setup, min(context, longest), traffic)
    return RealTraffic(plan, curve)


def _shares_experts(asked: Askable) -> bool:
    """Whether one replica more leaves each of them another pool."""
    sizes = asked.setup.parallelism
    more = replace(asked.setup, parallelism=sizes.model_copy(update={"dp": sizes.dp + 1}))
    try:
        blocks = {
            asked.engine.prepare(setup).figures(asked.context).blocks
            for setup in (asked.setup, more)
        }
    except KvplanError:
        return False
    return len(blocks) > 1


def book_of_plan(plan: Plan, price: Price | None = None) -> PlanBook:
    """The same of a plan that was saved: without what only its engine can answer."""
    rungs: tuple[Rung, ...] = ()
    if plan.capacity is not None and plan.workload.context is not None:
        rungs = (Rung(plan.workload.context, request_rule.per_replica(plan)),)
    return PlanBook(plan, None, (), rungs, (), economics_of(None, price))


def economics_of(gpu: GpuSpec | None, price: Price | None) -> Economics:
    """What is known of a device's price and power."""
    power = gpu.power_watts if gpu else None
    return Economics(
        price_per_gpu_hour=price.per_gpu_hour if price else None,
        currency=price.currency if price else "USD",
        source=price.source if price else "",
        power_watts=power.value if power else None,
        power_source=power.source if power else "",
    )


def _alternatives(
    spec: ModelSpec, asked: Asked, host: HostProfile | None, plan: Plan, *, offline: bool
) -> Iterator[Alternative]:
    for advice in plan.advice[:MOST_ALTERNATIVES]:
        changed = _changed(asked, advice)
        if changed is None:
            continue
        try:
            other, _ = api.planned(spec, changed, host, offline=offline, advice=False)
        except KvplanError:
            continue
        gained = 0 if advice.change else advice.gain.requests
        yield Alternative(advice.action, advice.cost, other, gained)


_SIZES = frozenset({"tp", "pp", "dp", "dcp"})
_WORDS = frozenset({"kv_dtype", "weights", "dtype"})


def _changed(asked: Asked, advice: Advice) -> Asked | None:
    """What is asked with the advice taken; None where it says more than is known here."""
    for name, value in advice.change.items():
        changed = _with(asked, name, value)
        if changed is None:
            return None
        asked = changed
    return asked


def _with(asked: Asked, name: str, value: Any) -> Asked | None:
    if name in _SIZES:
        sizes = asked.parallelism.model_copy(update={name: value})
        return replace(asked, parallelism=sizes)
    if name in _WORDS:
        return replace(asked, **{name: value})
    if name in ("context", "concurrency"):
        return replace(asked, load=replace(asked.load, **{name: value}))
    if name == "engine_options":
        return replace(asked, options={**asked.options, **value})
    if name == "engine":
        return replace(asked, engine=engine_of(value))
    return replace(asked, gpus=find_gpus(value)) if name == "gpu" else None
