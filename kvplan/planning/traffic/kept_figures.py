"""What sessions that are kept for their next turn take, and what a policy would drop."""

from __future__ import annotations

import math

from kvplan.engines.base import Prepared
from kvplan.errors import NotModelledError
from kvplan.models.caches import ChunkedCache, WindowCache
from kvplan.models.spec import ModelSpec
from kvplan.planning.policy import HeavyHitters, Policy, Rule, Streaming, implemented_by, not_in
from kvplan.planning.traffic.capacity import Held, Replica
from kvplan.planning.traffic.replica import Measured, held_by
from kvplan.planning.traffic.seen import Units, seen, units_of
from kvplan.planning.traffic.traffic import Service, Traffic
from kvplan.traffic_parts import PolicyFigures, Retained
from kvplan.traffic_plan import LoadOnPools
from kvplan.workloads.lengths import Pair


def retained(
    prepared: Prepared, measured: Measured, traffic: Traffic, held: Held, load: LoadOnPools | None
) -> Retained | None:
    """The share of what is held that only waits for a next turn; None: nothing is kept."""
    rule = traffic.retention
    if rule is None:
        return None
    running = 1 - measured.kept_steps / measured.steps
    replicas = measured.pools.replicas
    at_once = int(held.requests) * replicas
    kept_s, unit_s = _kept(prepared, traffic)
    rate = None if load is None else load.rate_per_s
    return Retained(
        ttl_s=rule.ttl_s,
        think_s=rule.think_s,
        found=rule.found,
        kept_s=kept_s,
        running_share=running,
        running=round(at_once * running),
        kept=at_once - round(at_once * running),
        kept_concurrent=None if rate is None else rate * kept_s,
        kept_units=None if rate is None else rate / replicas * unit_s,
    )


def _kept(prepared: Prepared, traffic: Traffic) -> tuple[float, float]:
    """Of a mean request, seconds that it is kept, and these times its own units."""
    kept = [
        (share, share * part.retention.kept_s(prompt, output), units(prompt + output)[-1])
        for part in traffic.parts()
        if part.retention is not None
        for units in (held_by(prepared, part.shared),)
        for prompt, output, share in part.pairs
    ]
    whole = math.fsum(share for share, _, _ in kept)
    seconds = math.fsum(weight for _, weight, _ in kept)
    return seconds / whole, math.fsum(weight * units for _, weight, units in kept) / whole


def under_policy(
    server: tuple[Prepared, ModelSpec, str],
    measured: Measured,
    asked: tuple[Traffic, Service],
    policy: Policy,
    risk: float,
) -> PolicyFigures:
    """What the policy would make of it.

    Args:
        server: The configuration, the model, and the engine's name.
        measured: Its pools.
        asked: The requests, and how fast they are served.
        policy: What is dropped.
        risk: The chosen risk.

    Raises:
        NotModelledError: the model has windows, whose entries no such policy counts.
    """
    (prepared, model, engine), (traffic, service) = server, asked
    if any(
        isinstance(cache, WindowCache | ChunkedCache)
        for layer in model.layers
        for cache in layer.caches
    ):
        raise NotModelledError(
            "What a policy drops is planned for models without windows only.",
            hint="Leave out --kv-policy.",
        )
    own = _units_left(prepared, measured, (traffic, service), policy.rule)
    held = Replica(measured.pools, own).constant(risk)
    longest = max(traffic.pairs, key=lambda pair: pair[0] + pair[1])
    return PolicyFigures(
        policy=policy.text,
        implemented=not_in(engine, policy) is None,
        by=implemented_by(policy),
        requests=int(held.requests) * measured.pools.replicas,
        mean_units=own[-1].mean,
        kept_longest=policy.rule.kept(longest[0] + traffic.in_front, longest[1]),
    )


def _units_left(
    prepared: Prepared, measured: Measured, asked: tuple[Traffic, Service], rule: Rule
) -> tuple[Units, ...]:
    """Of each pool, what a seen request holds after the policy."""
    traffic, service = asked
    pairs = tuple(_cut(rule, pair, traffic.in_front) for pair in traffic.pairs)
    kept = traffic.retention and traffic.retention.over(traffic.pairs, pairs)
    cap = _cap(rule)

    def units(tokens: int) -> tuple[int, ...]:
        return prepared.request_units(tokens if cap is None else min(tokens, cap))

    found = seen(pairs, step=measured.pools.step, life=service.life(kept))
    return units_of(found.tokens, units, len(measured.pools.pools))


def _cut(rule: Rule, pair: Pair, in_front: int) -> Pair:
    """The request as it is after its prompt; what is generated is cut by `_cap`."""
    prompt, output, share = pair
    return max(1, rule.kept(prompt + in_front, 0)), output, share


def _cap(rule: Rule) -> int | None:
    """Entries that a request never exceeds, or None."""
    match rule:
        case Streaming():
            return rule.sinks + rule.window
        case HeavyHitters():
            return rule.budget
        case _:
            return None
