"""A day of arrivals, or of users, on a number of replicas."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from kvplan.errors import UsageError
from kvplan.planning.traffic.capacity import Replica, last
from kvplan.planning.traffic.populations import Poisson, Population, Users
from kvplan.planning.traffic.traffic import Demand, Service
from kvplan.traffic_plan import HourOfDay, LoadOnPools

MOST_REPLICAS = 4096


@dataclass(frozen=True, slots=True)
class Stream:
    """Demand with the life of a request.

    Attributes:
        life_s: Seconds that a request holds blocks on average.
        kept_s: Of these, seconds after its last token, while its user thinks.
    """

    demand: Demand
    life_s: float
    kept_s: float = 0.0

    @property
    def users_share(self) -> float:
        """Share of a user's time in which blocks are held: waiting for an answer, or kept."""
        return min(1.0, self.life_s / self._cycle_s)

    @property
    def rate_per_s(self) -> float:
        """Requests a second over the day."""
        if self.demand.rate_per_s is not None:
            return self.demand.rate_per_s
        return (self.demand.users or 0) / self._cycle_s

    @property
    def _cycle_s(self) -> float:
        """Seconds from one request of a user to the next one."""
        return self.life_s - self.kept_s + self.demand.think_s

    def population(self, factor: float, replicas: int) -> Population:
        """Requests at once on one of so many replicas, at ``factor`` times the mean rate."""
        if self.demand.users is None:
            return Poisson(self.rate_per_s * factor * self.life_s / replicas)
        users = math.ceil(self.demand.users * factor / replicas)
        return Users(users, self.users_share)


def load_of(
    replica: Replica,
    demand: Demand,
    service: Service,
    *,
    steps: float,
    replicas: int,
    risk: float,
    kept_steps: float = 0.0,
) -> LoadOnPools:
    """Judges a day.

    Args:
        replica: One replica's pools and units.
        demand: What comes.
        service: How fast it is served.
        steps: Mean time that a request holds blocks, in decoding steps.
        kept_steps: Of these, steps after its last token.
        replicas: Replicas that share the demand evenly.
        risk: The chosen risk.

    Raises:
        UsageError: the rate at which tokens are generated is not stated.
    """
    rate = _decode_rate(service)
    stream = Stream(demand, steps / rate, kept_steps / rate)
    peak = demand.profile.peak
    # The busiest hour first: its grid serves all the others.
    by_factor = {
        factor: replica.risk(stream.population(factor, replicas))
        for factor in sorted({*demand.profile.hours, 1.0}, reverse=True)
    }
    by_factor[peak] = replica.judged(stream.population(peak, replicas))
    concurrent = stream.population(1.0, replicas).mean * replicas
    most = _most(replica, stream, risk)
    return LoadOnPools(
        kind="arrivals" if demand.users is None else "users",
        rate_per_s=stream.rate_per_s,
        users=demand.users,
        life_s=stream.life_s,
        concurrent=concurrent,
        peak_factor=peak,
        peak_concurrent=concurrent * peak,
        risk=by_factor[1.0],
        peak_risk=by_factor[peak],
        most_rate_per_s=None if most is None else most * replicas / stream.life_s,
        replicas=replicas,
        replicas_needed=_replicas(replica, stream, peak, risk, most),
        hours=_hours(stream, concurrent, by_factor),
    )


def _decode_rate(service: Service) -> float:
    if service.decode_tokens_per_s is None:
        raise UsageError(
            "How long requests last is not stated, so arrivals say nothing.",
            hint="Add --decode-rate, in tokens a second of one request.",
        )
    return service.decode_tokens_per_s


def _hours(
    stream: Stream, concurrent: float, by_factor: Mapping[float, float]
) -> tuple[HourOfDay, ...]:
    return tuple(
        HourOfDay(
            hour=hour,
            rate_per_s=stream.rate_per_s * factor,
            concurrent=concurrent * factor,
            risk=by_factor[factor],
        )
        for hour, factor in enumerate(stream.demand.profile.hours)
    )


def _most(replica: Replica, stream: Stream, risk: float) -> float | None:
    """Arrivals at once that a replica holds on average; None: users come."""
    return replica.arriving(risk).requests if stream.demand.users is None else None


def _replicas(
    replica: Replica, stream: Stream, peak: float, risk: float, most: float | None
) -> int | None:
    """The fewest replicas that hold the busiest hour; ``most``: arrivals that one holds."""
    held = replica.on_average() if most is None else most
    guess = stream.population(peak, 1).mean / held if held > 0 else MOST_REPLICAS
    too_few = last(
        lambda count: replica.judged(stream.population(peak, count)) > risk,
        min(MOST_REPLICAS, math.ceil(guess)) - 1,
        MOST_REPLICAS,
    )
    return None if too_few == MOST_REPLICAS else too_few + 1
