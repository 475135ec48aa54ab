"""What a scenario's requests do to its plan."""

from __future__ import annotations

import math
from collections.abc import Iterator

from kvplan.check_result import TrafficResult
from kvplan.checking.requests import Requests, requests_of
from kvplan.engines.base import Prepared, Setup
from kvplan.planning.traffic import answer
from kvplan.planning.traffic.capacity import Replica
from kvplan.planning.traffic.populations import Constant
from kvplan.planning.traffic.replica import measure
from kvplan.planning.traffic.retention import Retention
from kvplan.planning.traffic.traffic import Demand, Service, Traffic
from kvplan.scenario.chain import as_rule
from kvplan.scenario.expectation import parse
from kvplan.scenario.figures import is_of_traffic
from kvplan.scenario.question import Question
from kvplan.scenario.workload import DEFAULT_RISK, Workload
from kvplan.traffic_plan import TrafficPlan
from kvplan.workloads.arrivals import EVERY_HOUR_ALIKE, DailyProfile

_MOST_REPLICAS = 4096


def wants_traffic(question: Question) -> bool:
    """Whether a scenario asks about requests that come and go."""
    workload = question.workload
    if workload.says_lengths or workload.says_demand:
        return True
    expected = question.scenario.expect or ()
    return workload.input_tokens is not None and any(
        is_of_traffic(name) for text in expected for name in _names(text)
    )


def _names(text: str) -> Iterator[str]:
    expected = parse(text)
    yield expected.name
    if expected.other:
        yield expected.other


def traffic_result(
    question: Question, prepared: Prepared, setup: Setup, longest: int
) -> TrafficResult:
    """What the workload's requests do to a configuration.

    Args:
        question: The scenario.
        prepared: The engine's configuration.
        setup: What it was prepared from.
        longest: Tokens of the longest request that it takes.

    Raises:
        KvplanError: see `kvplan.planning.traffic.answer.answer_traffic`.
    """
    asked = _question(question, requests_of(question))
    plan = answer.answer_traffic(prepared, setup, longest, asked)
    if plan.load is not None:
        load = plan.load
        return TrafficResult(
            plan=plan, overload_risk=load.peak_risk, replicas_needed=load.replicas_needed
        )
    if question.concurrency is None:
        return TrafficResult(plan=plan)
    return _always_there(question.concurrency, plan, asked, prepared, longest=longest)


def _question(question: Question, requests: Requests) -> answer.Question:
    """What is asked about the requests."""
    workload = question.workload
    service = _service(workload, requests)
    return answer.Question(
        traffic=Traffic(
            requests.pairs,
            requests.grows,
            as_rule(workload.prefixes),
            prefix_in_front=requests.in_front,
            retention=_retention(workload, requests),
        ),
        name=requests.name,
        risk=workload.risk or DEFAULT_RISK,
        service=service,
        demand=_demand(workload, requests, service, question.concurrency),
        fits=requests.fits,
        requests_read=requests.read,
        requests_failed=requests.failed,
    )


def _always_there(
    concurrency: int,
    plan: TrafficPlan,
    asked: answer.Question,
    prepared: Prepared,
    *,
    longest: int,
) -> TrafficResult:
    """The answer where the same number of requests is there at any time."""
    taken, _ = asked.traffic.within(longest)
    versions = plan.prefix.versions_alive if plan.prefix else 1.0
    found = measure(prepared, longest, taken, asked.service, versions=versions)
    # Sessions that are kept hold blocks beside the requests that run.
    running = plan.retention.running_share if plan.retention else 1.0
    holding = math.ceil(concurrency / running)
    return TrafficResult(
        plan=plan,
        overload_risk=_constant_risk(found.replica(), holding, found.pools.replicas),
        replicas_needed=_fewest(found.replica(), holding, asked.risk),
    )


def _service(workload: Workload, requests: Requests) -> Service:
    """How fast a request is served, as stated or by how long it is held."""
    rate, seconds = workload.decode_rate, workload.seconds_per_request
    if rate is None and seconds is not None:
        shares = math.fsum(share for _, _, share in requests.pairs)
        steps = math.fsum(output * share for _, output, share in requests.pairs) / shares
        rate = steps / seconds
    return Service(decode_tokens_per_s=rate, prefill_tokens_per_s=workload.prefill_rate)


def _retention(workload: Workload, requests: Requests) -> Retention | None:
    """How long blocks are kept for the next turn, where it is known that there is one."""
    ttl = workload.sessions.ttl if workload.sessions else None
    if ttl is None or (requests.last is None and workload.users is None):
        return None
    return Retention(ttl, workload.think or 0.0, requests.last or {})


def _demand(
    workload: Workload, requests: Requests, service: Service, concurrency: int | None
) -> Demand | None:
    """How requests come; None where always the same number is there, or nothing is said."""
    profile = DailyProfile(workload.daily) if workload.daily else EVERY_HOUR_ALIKE
    if workload.users is not None:
        return Demand(users=workload.users, think_s=workload.think or 0.0, profile=profile)
    rate = workload.rate
    if rate is None and concurrency is None and service.decode_tokens_per_s is not None:
        rate = requests.rate_per_s
    return None if rate is None else Demand(rate_per_s=rate, profile=profile)


def _constant_risk(replica: Replica, requests: int, replicas: int) -> float:
    """How likely so many requests, spread evenly, hold more than there is."""
    return replica.judged(Constant(math.ceil(requests / replicas)))


def _fewest(replica: Replica, requests: int, risk: float) -> int | None:
    """Replicas at which the chosen risk is kept. Bisection: more of them never raise it."""
    low, high = 0, 1
    while _constant_risk(replica, requests, high) > risk:
        low, high = high, high * 2
        if high > _MOST_REPLICAS:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        held = _constant_risk(replica, requests, middle) <= risk
        low, high = (low, middle) if held else (middle, high)
    return high
