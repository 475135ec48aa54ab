"""What a reader has to know about an answer, as sentences."""

from __future__ import annotations

from collections.abc import Iterator

from kvplan.plan import Reason
from kvplan.planning.traffic.capacity import Held
from kvplan.planning.traffic.traffic import Demand, Service, Traffic
from kvplan.traffic_plan import LoadOnPools


def assumed(traffic: Traffic, service: Service, demand: Demand | None) -> tuple[str, ...]:
    """What was taken for granted."""
    return tuple(_assumed(traffic, service, demand))


def _assumed(traffic: Traffic, service: Service, demand: Demand | None) -> Iterator[str]:
    yield "Lengths of different requests have nothing to do with one another."
    if traffic.grows:
        yield "All requests generate at the same rate, so long outputs are seen more often."
    else:
        yield (
            "No outputs are stated: every request holds its whole length from start to end, and "
            "all last equally long."
        )
    if traffic.grows and service.prefill_tokens_per_s is None:
        yield "Prompts are computed at once: --prefill-rate counts the time that they take."
    if demand is not None and demand.rate_per_s is not None:
        yield "Requests come at random (Poisson) and are spread evenly over the replicas."
    if demand is not None and demand.users is not None:
        yield "Users wait for an answer before they think; they are spread evenly over replicas."


def reasons(
    held: Held, load: LoadOnPools | None, risk: float, left_out: float, context: int
) -> Iterator[Reason]:
    """What limits it."""
    if left_out:
        yield Reason(
            code="requests_too_long",
            message=f"{left_out:.2%} of the requests have prompts beyond {context:,} tokens; the"
            " engine refuses them.",
            hint="Raise --context.",
        )
    if held.requests < 1:
        yield Reason(
            code="traffic_not_held",
            message=f"Not even one request is held at a risk of {risk:.3%}.",
            hint="Use a larger GPU, a smaller cache type, or accept a higher --risk.",
        )
    if load is not None and load.peak_risk > risk:
        yield Reason(code="traffic_peak", message=_peak(load, risk), hint=_remedy(load))


def pool_range(low: int, high: int) -> Reason:
    """Requests at both ends of what memory may be left for the pools."""
    return Reason(
        code="held_range",
        message=f"Runtime memory is a range: with the least and the most that may be left for the "
        f"cache, {low:,} to {high:,} requests are held.",
        hint="Measure a start on the target machine, or give --kv-budget.",
    )


def _peak(load: LoadOnPools, risk: float) -> str:
    if load.risk > risk:
        return f"The pool is too small {load.risk:.2%} of the time even at the day's mean rate."
    return (
        f"It fits at the day's mean rate, and in the busiest hour the pool is too small "
        f"{load.peak_risk:.2%} of the time."
    )


def _remedy(load: LoadOnPools) -> str:
    if load.replicas_needed is None:
        return "More replicas do not cure it: a single request is too much for one."
    return f"Use {load.replicas_needed:,} replicas in place of {load.replicas:,}."
