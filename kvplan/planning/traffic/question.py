"""What is asked about traffic, and what was found on the way to the answer."""

from __future__ import annotations

from dataclasses import dataclass

from kvplan.engines.base import Answer, Prepared, Setup
from kvplan.planning.policy import Policy
from kvplan.planning.traffic.capacity import Held
from kvplan.planning.traffic.offload import TierAsked
from kvplan.planning.traffic.pools_apart import ApartAsked
from kvplan.planning.traffic.replica import Measured
from kvplan.planning.traffic.traffic import Demand, Service, Traffic
from kvplan.traffic_parts import DisaggregatedPools
from kvplan.traffic_plan import HeldRequests, LoadOnPools
from kvplan.workloads.percentiles import Fit


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
        tiers: Memories behind the GPUs'.
        apart: Prompts are computed by replicas of their own, or None.
        policy: A policy that drops entries of the cache, or None.
        verify: Find the held requests by simulation, too.
    """

    traffic: Traffic
    name: str
    risk: float
    service: Service
    demand: Demand | None = None
    fits: tuple[Fit, ...] = ()
    requests_read: int | None = None
    requests_failed: int = 0
    tiers: tuple[TierAsked, ...] = ()
    apart: ApartAsked | None = None
    policy: Policy | None = None
    verify: bool = False


@dataclass(frozen=True, slots=True)
class Found:
    """What was worked out on the way to a plan; see `kvplan.planning.traffic.answer`."""

    prepared: Prepared
    setup: Setup
    asked: Question
    traffic: Traffic
    left_out: float
    life_s: float
    measured: Measured
    held: Held
    part: HeldRequests
    load: LoadOnPools | None
    two: DisaggregatedPools | None
    engine: Answer
