"""What a deployment costs: by the hour, and by the request."""

from __future__ import annotations

from kvplan.check_result import Cost
from kvplan.scenario.facts import Facts, Missing, concurrency_of, holds

_SECONDS_AN_HOUR = 3600


def cost_per_hour(facts: Facts) -> float | Missing:
    """Price of a GPU for an hour times the GPUs."""
    if facts.prices is None:
        return Missing("no price is stated")
    return facts.prices.gpu_hour * facts.plan.gpu.count


def cost_per_request(facts: Facts) -> float | Missing:
    """Price of a request.

    Of traffic with a rate: over the day. Else while the deployment is as full as was asked for,
    or as it can be.
    """
    hourly, per_hour = cost_per_hour(facts), _requests_per_hour(facts)
    if isinstance(hourly, Missing):
        return hourly
    return per_hour if isinstance(per_hour, Missing) else hourly / per_hour


def _requests_per_hour(facts: Facts) -> float | Missing:
    load = facts.traffic.plan.load if facts.traffic else None
    if load is not None:
        return load.rate_per_s * _SECONDS_AN_HOUR
    most, seconds = holds(facts), facts.workload.seconds_per_request
    if isinstance(most, Missing):
        return most
    if seconds is None:
        return Missing("workload.seconds_per_request is not stated")
    filled = min(concurrency_of(facts) or most, most)
    if filled == 0:
        return Missing("not even one request fits")
    return filled * _SECONDS_AN_HOUR / seconds


def cost_of(facts: Facts) -> Cost | None:
    """What the deployment costs, where a price is stated."""
    hourly = cost_per_hour(facts)
    if isinstance(hourly, Missing) or facts.prices is None:
        return None
    each = cost_per_request(facts)
    return Cost(
        currency=facts.prices.currency,
        per_hour=hourly,
        per_request=None if isinstance(each, Missing) else each,
    )
