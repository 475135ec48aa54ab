"""Parts of a traffic plan: pools, a shared prefix, tiers, a policy."""

from __future__ import annotations

import math

from kvplan.planning.traffic.kept_figures import under_policy
from kvplan.planning.traffic.offload import Running, offload_tiers
from kvplan.planning.traffic.question import Found
from kvplan.planning.traffic.replica import Measured
from kvplan.planning.traffic.speeds import machine_of, prompts_of
from kvplan.traffic_parts import OffloadTier, PolicyFigures
from kvplan.traffic_plan import PoolUse, PrefixUseOfPools


def policy(found: Found) -> PolicyFigures | None:
    """What dropping entries of the cache would do, if that was asked."""
    asked = found.asked
    if asked.policy is None:
        return None
    return under_policy(
        (found.prepared, found.setup.model, found.engine.engine.name),
        found.measured,
        (found.traffic, asked.service),
        asked.policy,
        asked.risk,
    )


def tiers(found: Found) -> tuple[OffloadTier, ...]:
    """Memories behind the GPUs'."""
    asked, traffic, load = found.asked, found.traffic, found.load
    if not asked.tiers:
        return ()
    in_front = traffic.in_front
    machine = machine_of(
        found.prepared, found.setup, prompt_rate=asked.service.prefill_tokens_per_s
    )
    prompts = prompts_of(traffic.pairs, in_front)
    running = 1 if load is None else max(1, round(load.concurrent / found.measured.pools.replicas))
    return offload_tiers(
        asked.tiers, machine, found.setup.gpu, prompts, Running(running, found.measured.tokens)
    )


def pools(measured: Measured) -> tuple[PoolUse, ...]:
    """The pools, and what a seen request holds of each."""
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


def prefix(found: Found) -> PrefixUseOfPools | None:
    """What a shared prefix saves and costs, if there is one."""
    measured, asked, rule = found.measured, found.asked, found.traffic.prefix
    if rule is None:
        return None
    capacity, life_s = found.engine.capacity, found.life_s
    at = [pool.name for pool in measured.pools.pools].index("kv")
    saved = found.held.requests * (measured.whole[at].mean - measured.units[at].mean)
    unit_bytes = capacity.bytes_per_block if capacity and len(measured.pools.pools) == 1 else None
    rate = asked.demand.rate_per_s if asked.demand else None
    change = measured.once[at] if rule.change_every_s is not None else 0
    return PrefixUseOfPools(
        tokens=rule.tokens,
        scope=rule.scope,
        copies=rule.copies,
        versions_alive=rule.versions_alive(life_s),
        units_once=measured.once[at],
        units_saved=saved,
        bytes_saved=None if unit_bytes is None else round(saved * unit_bytes),
        change_units=change,
        change_bytes=None if unit_bytes is None else change * unit_bytes,
        change_s=life_s if change and life_s else None,
        hit_rate=None if rate is None else rule.hit_rate(rate / measured.pools.replicas),
    )
