"""Everything that is asked about traffic, put together as a `TrafficPlan`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from kvplan.engines.base import Answer, Prepared, Setup
from kvplan.errors import UsageError
from kvplan.plan import Reason, Verdict
from kvplan.plan_book import RiskPoint
from kvplan.planning.size import gpu_part, model_part
from kvplan.planning.traffic import figures, words
from kvplan.planning.traffic.capacity import Held
from kvplan.planning.traffic.closeness import is_close, most_held
from kvplan.planning.traffic.day import load_of
from kvplan.planning.traffic.kept_figures import retained
from kvplan.planning.traffic.pools_apart import Prefill, apart_of, pools_of
from kvplan.planning.traffic.question import Found, Question
from kvplan.planning.traffic.replica import Measured, measure
from kvplan.planning.traffic.risk_curve import risk_curve
from kvplan.planning.traffic.summary import summary_of
from kvplan.planning.traffic.traffic import Service, Traffic, check_risk
from kvplan.planning.traffic.verified import verified
from kvplan.traffic_parts import HeldByClosedSimulation
from kvplan.traffic_plan import FittedPercentiles, HeldRequests, LoadOnPools, TrafficPlan
from kvplan.workloads.percentiles import Fit

__all__ = ["Question", "answer_traffic", "answer_with_curve"]

_HUNDRED = 100.0


def answer_traffic(
    prepared: Prepared,
    setup: Setup,
    context: int,
    asked: Question,
    *,
    prefill: Prefill | None = None,
) -> TrafficPlan:
    """Answers.

    Args:
        prepared: The configuration that requests are held by.
        setup: What it was prepared from.
        context: The longest request that it takes.
        asked: What is to be answered.
        prefill: A replica that only computes prompts, where ``asked.apart`` wants one.

    Raises:
        NotModelledError: the engine has no pool for requests that come and go.
        UsageError: no request that it takes, or a rate that is missing.
    """
    check_risk(asked.risk)
    return _plan(_look(prepared, setup, context, asked, prefill), context)


def answer_with_curve(
    prepared: Prepared, setup: Setup, context: int, asked: Question
) -> tuple[TrafficPlan, tuple[RiskPoint, ...]]:
    """The same without a prefill pool, and the risk by the number of requests at once.

    Raises:
        NotModelledError, UsageError: see `answer_traffic`.
    """
    check_risk(asked.risk)
    found = _look(prepared, setup, context, asked, None)
    arriving = asked.demand is not None and asked.demand.users is None
    curve = risk_curve(found.measured, found.engine.capacity, arriving=arriving)
    return _plan(found, context), curve


def _look(
    prepared: Prepared, setup: Setup, context: int, asked: Question, prefill: Prefill | None
) -> Found:
    traffic, left_out = _taken(asked, context)
    apart = None
    if asked.apart is not None:
        apart = apart_of(asked.apart, (prepared, setup), prefill, traffic, asked.service)
        asked = replace(asked, service=apart.decoding)
    life_s = _longest_life(traffic, asked.service)
    versions = traffic.prefix.versions_alive(life_s) if traffic.prefix else 1.0
    measured = measure(prepared, context, traffic, asked.service, versions=versions)
    held = measured.replica().constant(asked.risk)
    load = _load(measured, asked)
    part = _held(prepared, measured, held, traffic, asked.risk)
    if asked.verify:
        check = verified(prepared, measured, (traffic, asked.service), held, asked.risk)
        part = _checked(part, check)
    return Found(
        prepared=prepared,
        setup=setup,
        asked=asked,
        traffic=traffic,
        left_out=left_out,
        life_s=life_s,
        measured=measured,
        held=held,
        part=part,
        load=load,
        two=None if apart is None else pools_of(apart, measured, traffic, asked.demand, load),
        engine=prepared.answer(context, None),
    )


def _plan(found: Found, context: int) -> TrafficPlan:
    asked, traffic, engine = found.asked, found.traffic, found.engine
    prompts = summary_of((prompt, share) for prompt, _, share in traffic.pairs)
    outputs = summary_of((output, share) for _, output, share in traffic.pairs)
    return TrafficPlan(
        verdict=_verdict(found),
        reasons=tuple(_reasons(found, context)),
        model=model_part(found.setup.model),
        gpu=gpu_part(found.setup, engine),
        engine=engine.engine,
        parallelism=engine.parallelism,
        context=context,
        traffic=asked.name,
        requests_read=asked.requests_read,
        requests_failed=asked.requests_failed,
        left_out=found.left_out,
        prompt=prompts,
        output=outputs if traffic.grows else None,
        total=summary_of((prompt + output, share) for prompt, output, share in traffic.pairs),
        fits=tuple(_fitted(asked.fits)),
        pools=figures.pools(found.measured),
        risk=asked.risk,
        held=found.part,
        load=found.load,
        prefix=figures.prefix(found),
        retention=retained(found.prepared, found.measured, traffic, found.held, found.load),
        tiers=figures.tiers(found),
        disaggregated=found.two,
        policy=figures.policy(found),
        assumed=words.assumed(traffic, asked.service, asked.demand)
        + words.assumed_of_parts(found.two, asked.tiers, asked.service),
    )


def _reasons(found: Found, context: int) -> Iterator[Reason]:
    asked, engine = found.asked, found.engine
    yield from engine.reasons
    yield from words.reasons(found.held, found.load, asked.risk, found.left_out, context)
    yield from words.not_offered(found.part, asked.risk)
    yield from words.two_pools(found.two)
    yield from words.dropping(asked.policy, engine.engine.name)
    yield from _range(engine, found.measured, asked.risk)


def _checked(part: HeldRequests, check: HeldByClosedSimulation) -> HeldRequests:
    """The held requests with what a simulation says of them; where it disagrees, it counts."""
    if check.agrees:
        return part.model_copy(update={"simulated": check})
    least = min(part.requests, check.requests)
    most = max(part.at_most, check.requests)
    return part.model_copy(
        update={"simulated": check, "offered": False, "requests": least, "at_most": most}
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
        kept_steps=measured.kept_steps,
        replicas=measured.pools.replicas,
        risk=asked.risk,
    )


def _verdict(found: Found) -> Verdict:
    if found.engine.verdict == "refused":
        return "refused"
    load, held = found.load, found.part
    if load is None:
        enough = held.requests >= 1
    else:
        # What the analysis says of a load is worth nothing where a simulation disagrees.
        withdrawn = held.simulated is not None and not held.simulated.agrees
        enough = load.peak_risk <= found.asked.risk and not withdrawn
    sized = found.two is None or words.all_sized(found.two)
    return "fits" if enough and sized else "does_not_fit"


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


def _held(
    prepared: Prepared, measured: Measured, held: Held, traffic: Traffic, chosen: float
) -> HeldRequests:
    replicas = measured.pools.replicas
    longest = max(prompt + output for prompt, output, _ in traffic.pairs) + traffic.in_front
    each = prepared.request_units(longest)
    at_longest = min(
        measured.pools.sequences,
        *(pool.count // max(1, one) for pool, one in zip(measured.pools.pools, each, strict=True)),
    )
    most = most_held(measured.replica(), held, chosen)
    return HeldRequests(
        requests=int(held.requests) * replicas,
        at_most=most * replicas,
        offered=is_close(int(held.requests), most),
        risk=held.risk,
        limited_by=held.limited_by,
        on_average=measured.replica().on_average() * replicas,
        at_longest=at_longest * replicas,
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


def _longest_life(traffic: Traffic, service: Service) -> float:
    """Seconds until the last request with an old prefix is done."""
    if service.decode_tokens_per_s is None or not traffic.pairs:
        return 0.0
    extra = traffic.in_front
    steps = max(made + (given + extra) * service.prompt_steps for given, made, _ in traffic.pairs)
    kept_s = traffic.retention.ttl_s if traffic.retention else 0.0
    return steps / service.decode_tokens_per_s + kept_s
