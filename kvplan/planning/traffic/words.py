"""What a reader has to know about an answer, as sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kvplan.plan import Reason
from kvplan.planning.policy import RECALL, Policy, not_in
from kvplan.planning.simulate.service import BANDWIDTH_EFFICIENCY, FLOPS_EFFICIENCY
from kvplan.planning.traffic.apart import BUSIEST
from kvplan.planning.traffic.capacity import Held
from kvplan.planning.traffic.traffic import Demand, Service, Traffic
from kvplan.traffic_parts import DisaggregatedPools
from kvplan.traffic_plan import HeldRequests, LoadOnPools


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
    if service.arriving_tokens_per_s is not None:
        yield "Whoever generates holds all blocks of a prompt while its cache arrives."
    elif traffic.grows and service.prefill_tokens_per_s is None:
        yield "Prompts are computed at once: --prefill-rate counts the time that they take."
    if demand is not None and demand.rate_per_s is not None:
        yield "Requests come at random (Poisson) and are spread evenly over the replicas."
    if traffic.retention is not None:
        yield "Pauses are exponential; a session without a next turn is kept for all of its time."
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
            hint="Raise --context, or plan for a model that takes more.",
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
    plural = "" if load.replicas_needed == 1 else "s"
    return f"Use {load.replicas_needed:,} replica{plural} in place of {load.replicas:,}."


def not_offered(held: HeldRequests, risk: float) -> Iterator[Reason]:
    """Why there is only a bound."""
    if held.simulated is not None and not held.simulated.agrees:
        yield Reason(
            code="analysis_withdrawn",
            message=f"A simulation holds {held.simulated.requests:,} requests at a risk of "
            f"{risk:.3%}; the analysis is more than 2 % from that and is not offered.",
            hint="Plan with the smaller figure.",
        )
    elif not held.offered:
        yield Reason(
            code="approximation_not_offered",
            message=f"Between {held.requests:,} and {held.at_most:,} requests are held: several "
            "pools, or very large ones, leave the analysis more than 2 % wide, so only what is "
            "surely held is given.",
            hint="Add --verify for a simulation of it.",
        )


def all_sized(two: DisaggregatedPools) -> bool:
    """Whether some number of replicas is enough on both sides."""
    return two.prefill.replicas_overlapped is not None and two.decode.replicas is not None


def two_pools(two: DisaggregatedPools | None) -> Iterator[Reason]:
    """What separate pools can't keep."""
    if two is None:
        return
    yield from _first_token(two)
    prefill, decode = two.prefill, two.decode
    if prefill.held is not None and prefill.held > prefill.room:
        yield Reason(
            code="prefill_pool_full",
            message=f"A prefill replica holds {prefill.held:.1f} requests on average and has room "
            f"for {prefill.room:.1f}.",
            hint="Use a faster link or a larger prefill GPU.",
        )
    if decode.by_speed is None:
        limit_s = two.first_token.decode_step_s
        yield Reason(
            code="step_too_slow",
            message=f"A single request already takes longer than {limit_s:g} s a step.",
            hint="Use more GPUs a decode replica, or a longer --between-tokens.",
        )


def _first_token(two: DisaggregatedPools) -> Iterator[Reason]:
    """What the first token needs."""
    first, prefill = two.first_token, two.prefill
    if prefill.replicas_overlapped is None:
        yield Reason(
            code="first_token_too_late",
            message=f"No number of prefill replicas has the first token in {first.limit_s:g} s: "
            f"computing a prompt of the 95th percentile takes {first.prefill_s:.3g} s and its "
            f"transfer {first.transfer_s:.3g} s.",
            hint="Use more GPUs a prefill replica, a faster link, or a longer limit.",
        )
    elif first.overlap_needed > 0:
        yield Reason(
            code="overlap_needed",
            message=f"With {prefill.replicas_overlapped:,} prefill replicas, "
            f"{first.overlap_needed:.0%} of a transfer has to overlap with the prompt; layers sent"
            f" one by one hide {first.overlap_possible:.0%} at most.",
            hint="vLLM's NixlConnector does not send layer by layer; without overlap "
            + (
                f"{prefill.replicas:,} prefill replicas are needed."
                if prefill.replicas is not None
                else "no number of prefill replicas is enough."
            ),
        )


def dropping(policy: Policy | None, engine: str) -> Iterator[Reason]:
    """What a policy costs, and whether the engine has it."""
    if policy is None:
        return
    missing = not_in(engine, policy)
    if missing is not None:
        yield Reason(
            code="kv_policy_not_implemented",
            message=missing,
            hint="Leave out --kv-policy, or use an engine that has it.",
        )
    yield Reason(code="kv_policy_trades_recall", message=RECALL)


def assumed_of_parts(
    two: DisaggregatedPools | None,
    tiers: Sequence[object],
    service: Service,
) -> tuple[str, ...]:
    """What was taken for granted beside `assumed`."""
    said: list[str] = []
    if (two is not None or tiers) and service.prefill_tokens_per_s is None:
        said.append(
            f"Without a stated rate, prompts and steps get {BANDWIDTH_EFFICIENCY:.0%} of the GPU's"
            f" bandwidth and {FLOPS_EFFICIENCY:.0%} of its 16-bit arithmetic."
        )
    if two is not None:
        said += [
            f"Transfers get {two.link.efficiency:.0%} of the link; every GPU has its own.",
            "Prompts queue at each prefill replica as M/G/1; waits are spread exponentially.",
            "No prefix is found by the prefill pool or left out of a transfer.",
        ]
    if two is not None and not two.decode.speed_known:
        said.append("How fast this GPU generates is not known: decode replicas go by memory alone.")
    if two is not None and two.first_token.limit_s is None:
        said.append(
            f"No limit of the first token is given: prefill replicas are busy {BUSIEST:.0%} of the"
            " time at most (--first-token sets one)."
        )
    return tuple(said)
