"""TrafficPlan: what real traffic does to a plan's pools. `kvplan.traffic/1` is this, dumped.

Requests and rates are those of the whole deployment unless a name says replica.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from kvplan._version import __version__
from kvplan.plan import EnginePart, GpuPart, ModelPart, Parallelism, Reason, Verdict
from kvplan.traffic_parts import (
    DisaggregatedPools,
    HeldByClosedSimulation,
    OffloadTier,
    PolicyFigures,
    Retained,
)


class _Part(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True, extra="forbid", populate_by_name=True, serialize_by_alias=True
    )


class LengthSummary(_Part):
    """Tokens of the requests that arrive.

    Attributes:
        p50, p90, p95, p99: Tokens that such a share does not exceed.
    """

    mean: float
    p50: int
    p90: int
    p95: int
    p99: int
    max: int


class FittedPercentiles(_Part):
    """The lognormal that given percentiles led to.

    Attributes:
        given: Percent and tokens, as stated.
        fitted: Percent and tokens, as the law has them.
        worst: The largest relative difference.
    """

    median: float
    sigma: float
    given: tuple[tuple[float, int], ...]
    fitted: tuple[tuple[float, float], ...]
    worst: float


class PoolUse(_Part):
    """One pool of a replica, and what a request of it holds when one looks at the server.

    Attributes:
        mean, deviation: Units that a seen request holds; long ones are seen more often.
        most: Units of the largest.
    """

    name: str
    unit: str
    count: int
    mean: float
    deviation: float
    most: int


class HeldRequests(_Part):
    """How many requests can always be there.

    Attributes:
        requests: At the chosen risk. Where sessions are kept for their next turn, those are in it.
        at_most: No more than so many; with one pool, the same. See `offered`.
        offered: ``requests`` is within 2 % of ``at_most``. If not, ``requests`` is no answer but
            only what is surely held.
        simulated: What walking through time found, if that was asked for.
        risk: How likely so many hold more than there is.
        limited_by: The pool that runs out first, or ``sequences``.
        on_average: Requests whose mean fills the pool: half of the time they are too many.
        at_longest: Requests if every one were as long as the longest.
    """

    requests: int
    risk: float
    limited_by: str
    on_average: float
    at_longest: int
    at_most: int
    offered: bool = True
    simulated: HeldByClosedSimulation | None = None


class HourOfDay(_Part):
    """One hour of the day.

    Attributes:
        concurrent: Requests at once on average.
        risk: How likely they hold more than there is.
    """

    hour: int
    rate_per_s: float
    concurrent: float
    risk: float


class LoadOnPools(_Part):
    """What arrivals, or users, make of it.

    Attributes:
        kind: ``arrivals`` come at random and none waits; ``users`` think between two requests.
        rate_per_s: Requests a second over the day.
        users: Users, or None for arrivals.
        life_s: Seconds that a request holds blocks on average.
        concurrent: Requests at once on average (Little's law: rate times life).
        peak_factor: The busiest hour over the mean of the day.
        peak_concurrent: Requests at once on average in that hour.
        risk: How likely there is too little at the day's mean.
        peak_risk: The same in the busiest hour.
        most_rate_per_s: The highest rate at the chosen risk; None for users.
        replicas: Those that were planned.
        replicas_needed: Those that hold the busiest hour at the chosen risk; None: not even 4,096.
        hours: The day.
    """

    kind: Literal["arrivals", "users"]
    rate_per_s: float
    users: int | None
    life_s: float
    concurrent: float
    peak_factor: float
    peak_concurrent: float
    risk: float
    peak_risk: float
    most_rate_per_s: float | None
    replicas: int
    replicas_needed: int | None
    hours: tuple[HourOfDay, ...]


class PrefixUseOfPools(_Part):
    """What a shared prefix saves and costs on one replica, in units of the pool ``kv``.

    Attributes:
        copies: Distinct prefixes of one version: one, or one a tenant.
        versions_alive: Versions held at once on average.
        units_once: Units of all copies of one version, held once.
        units_saved: Units that the held requests would hold besides, without sharing.
        bytes_saved: The same on one GPU, or None where a unit's bytes are not known.
        change_units: Further units while a new version and the old one are both held.
        change_bytes: The same on one GPU, or None where a unit's bytes are not known.
        change_s: Seconds that both are, until the last request with the old one ends; None: how
            long requests last is not stated.
        hit_rate: Share of requests with the prefix that find it; None without a rate.
    """

    tokens: int
    scope: Literal["tenant", "global"]
    copies: int
    versions_alive: float
    units_once: int
    units_saved: float
    bytes_saved: int | None
    change_units: int
    change_bytes: int | None
    change_s: float | None
    hit_rate: float | None


class TrafficPlan(_Part):
    """The whole answer.

    Attributes:
        traffic: The file or the lengths as they were given.
        requests_read: Requests of a trace; None for lengths.
        requests_failed: Rows of a trace without an output, which were left out.
        left_out: Share of the requests that the engine would refuse as too long.
        risk: The chosen risk.
        disaggregated: Two pools; all other figures are then those of the decode pool.
        policy: What dropping entries of the cache would do; it is in no other figure.
        assumed: What was taken for granted, as sentences.

    Example:
        >>> from kvplan import Workload, traffic
        >>> chat = Workload("p50=1k,p95=4k/300")
        >>> found = traffic("Qwen/Qwen3-8B", "H100", chat, context=8192, offline=True)
        >>> found.held.at_longest < found.held.requests <= found.held.at_most
        True
    """

    schema_: str = Field(default="kvplan.traffic/1", alias="schema")
    kvplan_version: str = __version__
    verdict: Verdict
    reasons: tuple[Reason, ...] = ()
    model: ModelPart
    gpu: GpuPart
    engine: EnginePart
    parallelism: Parallelism
    context: int
    traffic: str
    requests_read: int | None = None
    requests_failed: int = 0
    left_out: float = 0.0
    prompt: LengthSummary
    output: LengthSummary | None
    total: LengthSummary
    fits: tuple[FittedPercentiles, ...] = ()
    pools: tuple[PoolUse, ...]
    risk: float
    held: HeldRequests
    load: LoadOnPools | None = None
    prefix: PrefixUseOfPools | None = None
    retention: Retained | None = None
    tiers: tuple[OffloadTier, ...] = ()
    disaggregated: DisaggregatedPools | None = None
    policy: PolicyFigures | None = None
    assumed: tuple[str, ...] = ()
