"""Everything that is asked about traffic, put together as a `TrafficPlan`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kvplan.engines.base import Answer, Prepared, Setup
from kvplan.errors import UsageError
from kvplan.plan import Reason, Verdict
from kvplan.planning.size import gpu_part, model_part
from kvplan.planning.traffic import words
from kvplan.planning.traffic.capacity import Held
from kvplan.planning.traffic.day import load_of
from kvplan.planning.traffic.replica import Measured, measure
from kvplan.planning.traffic.summary import summary_of
from kvplan.planning.traffic.traffic import Demand, Service, Traffic, check_risk
from kvplan.traffic_plan import (
    FittedPercentiles,
    HeldRequests,
    LoadOnPools,
    PoolUse,
    PrefixUseOfPools,
    TrafficPlan,
)
from kvplan.workloads.percentiles import Fit

_HUNDRED = 100.0


@dataclass(frozen=True, slots=True)
class Question:
    """What is to be answered.

    Attributes:
        traffic: The requests.
        name: What they are called: a file, or lengths as they were given.
        risk: The chosen risk.
        service: How fast they are served.
        demand: How many come, or None: only what can be held.
        fits: Laws that were fitted.
        requests_read: Requests of a trace, or None.
        requests_failed: Rows of a trace without an output, which were left out.
    """

    traffic: Traffic
    name: str
    risk: float
    service: Service
    demand: Demand | None = None
    fits: tuple[Fit, ...] = ()
    requests_read: int | None = None
    requests_failed: int = 0


def answer_traffic(prepared: Prepared, setup: Setup, context: int, asked: Question) -> TrafficPlan:
    """Answers.

    Raises:
        NotModelledError: the engine has no pool for requests that come and go.
        UsageError: no request that it takes, or a rate that is missing.
    """
    check_risk(asked.risk)
    traffic, left_out = _taken(asked, context)
    life_s = _longest_life(traffic, asked.service)
    versions = traffic.prefix.versions_alive(life_s) if traffic.prefix else 1.0
    measured = measure(prepared, context, traffic, asked.service, versions=versions)
    held = measured.replica().constant(asked.risk)
    load = _load(measured, asked)
    engine = prepared.answer(context, None)
    return TrafficPlan(
        verdict=_verdict(engine, held, load, asked.risk),
        reasons=(
            *engine.reasons,
            *words.reasons(held, load, asked.risk, left_out, context),
            *_range(engine, measured, asked.risk),
        ),
        model=model_part(setup.model),
        gpu=gpu_part(setup, engine),
        engine=engine.engine,
        parallelism=engine.parallelism,
        context=context,
        traffic=asked.name,
        requests_read=asked.requests_read,
        requests_failed=asked.requests_failed,
        left_out=left_out,
        prompt=summary_of((prompt, share) for prompt, _, share in traffic.pairs),
        output=summary_of((output, share) for _, output, share in traffic.pairs)
        if traffic.grows
        else None,
        total=summary_of((prompt + output, share) for prompt, output, share in traffic.pairs),
        fits=tuple(_fitted(asked.fits)),
        pools=_pools(measured),
        risk=asked.risk,
        held=_held(prepared, measured, held, traffic),
        load=load,
        prefix=_prefix(measured, engine, asked, held, life_s),
        assumed=words.assumed(traffic, asked.service, asked.demand),
    )


def _taken(asked: Question, context: int) -> tuple[Traffic, float]:
    """The requests that the engine takes, and the share that it refuses."""
    traffic, left_out = asked.traffic.within(context)
    if not traffic.pairs:
        raise UsageError(
            f"There is no request of less than {context:,} tokens, which is all that is planned.",
            hint="Check the traffic, or raise --context.",
        )
    return traffic, left_out


def _load(measured: Measured, asked: Question) -> LoadOnPools | None:
    if asked.demand is None:
        return None
    return load_of(
        measured.replica(),
        asked.demand,
        asked.service,
        steps=measured.steps,
        replicas=measured.pools.replicas,
        risk=asked.risk,
    )


def _verdict(engine: Answer, held: Held, load: LoadOnPools | None, risk: float) -> Verdict:
    if engine.verdict == "refused":
        return "refused"
    enough = held.requests >= 1 if load is None else load.peak_risk <= risk
    return "fits" if enough else "does_not_fit"


def _range(engine: Answer, measured: Measured, risk: float) -> Iterator[Reason]:
    """What is held at the ends of the pool's range, where fitted memory makes it one."""
    capacity = engine.capacity
    if capacity is None or capacity.tokens_low is None or capacity.tokens_high is None:
        return
    if not 0 < capacity.tokens_low < capacity.tokens_high:
        return
    low, high = (
        int(measured.replica_of(tokens / capacity.tokens).constant(risk).requests)
        * measured.pools.replicas
        for tokens in (capacity.tokens_low, capacity.tokens_high)
    )
    yield words.pool_range(low, high)


def _held(prepared: Prepared, measured: Measured, held: Held, traffic: Traffic) -> HeldRequests:
    replicas = measured.pools.replicas
    extra = traffic.prefix.tokens if traffic.prefix and traffic.prefix_in_front else 0
    longest = max(prompt + output for prompt, output, _ in traffic.pairs) + extra
    each = prepared.request_units(longest)
    at_longest = min(
        measured.pools.sequences,
        *(pool.count // max(1, one) for pool, one in zip(measured.pools.pools, each, strict=True)),
    )
    return HeldRequests(
        requests=int(held.requests) * replicas,
        risk=held.risk,
        limited_by=held.limited_by,
        on_average=measured.replica().on_average() * replicas,
        at_longest=at_longest * replicas,
    )


def _pools(measured: Measured) -> tuple[PoolUse, ...]:
    return tuple(
        PoolUse(
            name=pool.name,
            unit=pool.unit,
            count=pool.count,
            mean=units.mean,
            deviation=math.sqrt(units.variance),
            most=units.most,
        )
        for pool, units in zip(measured.pools.pools, measured.units, strict=True)
    )


def _fitted(fits: Iterable[Fit]) -> Iterable[FittedPercentiles]:
    for fit in fits:
        yield FittedPercentiles(
            median=fit.law.median,
            sigma=fit.law.sigma,
            given=tuple((share * _HUNDRED, tokens) for share, tokens in fit.given),
            fitted=tuple((share * _HUNDRED, tokens) for share, tokens in fit.fitted),
            worst=fit.worst,
        )


def _prefix(
    measured: Measured, engine: Answer, asked: Question, held: Held, life_s: float
) -> PrefixUseOfPools | None:
    rule = asked.traffic.prefix
    if rule is None:
        return None
    at = [pool.name for pool in measured.pools.pools].index("kv")
    saved = held.requests * (measured.whole[at].mean - measured.units[at].mean)
    unit_bytes = engine.capacity.bytes_per_block if len(measured.pools.pools) == 1 else None
    rate = asked.demand.rate_per_s if asked.demand else None
    return PrefixUseOfPools(
        tokens=rule.tokens,
        scope=rule.scope,
        copies=rule.copies,
        versions_alive=rule.versions_alive(life_s),
        units_once=measured.once[at],
        units_saved=saved,
        bytes_saved=None if unit_bytes is None else round(saved * unit_bytes),
        change_units=measured.once[at] if rule.change_every_s is not None else 0,
        hit_rate=None if rate is None else rule.hit_rate(rate / measured.pools.replicas),
    )


def _longest_life(traffic: Traffic, service: Service) -> float:
    """Seconds until the last request with an old prefix is done."""
    if service.decode_tokens_per_s is None or not traffic.pairs:
        return 0.0
    steps = max(output + prompt * service.prompt_steps for prompt, output, _ in traffic.pairs)
    return steps / service.decode_tokens_per_s
