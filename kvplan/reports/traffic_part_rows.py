"""Rows of the parts of a traffic plan that only some questions have."""

from __future__ import annotations

from collections.abc import Iterator

from kvplan.reports.figures import counted, size
from kvplan.reports.section import Section, percent
from kvplan.reports.simulation_rows import seconds
from kvplan.traffic_parts import (
    DisaggregatedPools,
    OffloadTier,
    PolicyFigures,
    Retained,
    TransferTimes,
)
from kvplan.traffic_plan import TrafficPlan

_GIGA = 1e9


def part_sections(plan: TrafficPlan) -> Iterator[Section]:
    """Kept sessions, tiers, separate pools, a policy."""
    if plan.retention is not None:
        yield Section("Sessions kept for their next turn", tuple(_retained(plan.retention)))
    for tier in plan.tiers:
        yield Section(f"Tier: {tier.name}", tuple(_tier(tier)))
    if plan.disaggregated is not None:
        yield from _apart(plan.disaggregated)
    if plan.policy is not None:
        yield Section("If entries were dropped", tuple(_policy(plan.policy, plan.held.requests)))


def _retained(part: Retained) -> Iterator[tuple[str, str]]:
    yield "at most", f"{seconds(part.ttl_s)}; the next turn comes after {seconds(part.think_s)}"
    yield "next turns in time", percent(round(part.found, 4))
    yield "kept on average", seconds(part.kept_s)
    yield "of those held", f"{part.running:,} generate, {part.kept:,} only wait"
    if part.kept_concurrent is not None and part.kept_units is not None:
        cost = f"{part.kept_units:,.0f} units of each replica's pool"
        yield "kept at once", f"{part.kept_concurrent:,.1f} sessions, {cost}"


def _tier(tier: OffloadTier) -> Iterator[tuple[str, str]]:
    many = counted(int(tier.requests), "request")
    yield "holds", f"{size(tier.bytes)}: {many}, together {tier.tokens:,} tokens"
    yield "each GPU reads", f"{_rate(tier.bytes_per_s)} ({tier.source})"
    yield "a prompt from it", _transfer(tier.load)
    if tier.compute_mean_s is not None and tier.faster is not None:
        computed = f"{seconds(tier.compute_mean_s)} for the mean prompt"
        if tier.compute_p95_s is not None:
            computed += f", {seconds(tier.compute_p95_s)} for p95"
        yield "computed instead", computed
        yield "time to first token", f"{_times(tier.faster)} computing the mean prompt"
    if tier.decode_step_s is not None and tier.decode_from_tier_s is not None:
        slow = tier.decode_from_tier_s / tier.decode_step_s
        there, here = seconds(tier.decode_from_tier_s), seconds(tier.decode_step_s)
        of = counted(tier.decode_requests, "request")
        yield f"a step of {of} that reads from it", f"{there} in place of {here} ({slow:.1f} times)"
    yield "prompts it can bring", f"{tier.most_loads_per_s:,.2f} a second"


def _times(faster: float) -> str:
    return (
        f"{faster:.1f} times as fast as" if faster >= 1 else f"{1 / faster:.1f} times slower than"
    )


def _transfer(load: TransferTimes) -> str:
    return ", ".join(
        f"{name} {size(count)} in {seconds(time)}"
        for name, count, time in (
            ("mean", load.bytes_mean, load.seconds_mean),
            ("p95", load.bytes_p95, load.seconds_p95),
            ("longest", load.bytes_longest, load.seconds_longest),
        )
    )


def _rate(bytes_per_s: float) -> str:
    return f"{bytes_per_s / _GIGA:,.1f} GB/s"


def _apart(two: DisaggregatedPools) -> Iterator[Section]:
    yield Section("Prefill pool", tuple(_prefill(two)))
    yield Section("Link", tuple(_link(two)))
    yield Section("First token, 95 % of requests", tuple(_first(two)))
    yield Section("Decode pool", tuple(_decode(two)))


def _prefill(two: DisaggregatedPools) -> Iterator[tuple[str, str]]:
    pool = two.prefill
    yield "a replica", f"{pool.tp} × {pool.gpu}"
    yield "a mean prompt", seconds(pool.prompt_s)
    yield "replicas needed", _count(pool.replicas)
    if pool.replicas != pool.replicas_overlapped:
        yield "with overlap", _count(pool.replicas_overlapped)
    if pool.utilization is not None and pool.held is not None:
        yield "busy", percent(round(pool.utilization, 4))
        yield "holds", f"{pool.held:,.1f} requests of {pool.room:,.0f} that fit"


def _link(two: DisaggregatedPools) -> Iterator[tuple[str, str]]:
    link = two.link
    yield "of each GPU", f"{link.name}, {_rate(link.bytes_per_s)} ({link.source})"
    yield "a transfer gets", percent(link.efficiency)
    yield "a prompt's cache", _transfer(two.transfer)
    if two.prefill.link_utilization is not None:
        yield "busy", percent(round(two.prefill.link_utilization, 4))


def _first(two: DisaggregatedPools) -> Iterator[tuple[str, str]]:
    part = two.first_token
    yield "wait", seconds(part.wait_s)
    yield "prompt", seconds(part.prefill_s)
    yield "transfer", seconds(part.transfer_s)
    yield "first step", seconds(part.decode_step_s)
    limit = "" if part.limit_s is None else f" (limit {seconds(part.limit_s)})"
    yield "together", seconds(part.total_s) + limit
    possible = percent(round(part.overlap_possible, 4))
    if part.overlap_needed > 1:
        yield "overlap needed", f"none is enough; layer by layer hides {possible}"
    else:
        needed = percent(round(part.overlap_needed, 4))
        yield "overlap needed", f"{needed} of a transfer; layer by layer hides {possible}"


def _decode(two: DisaggregatedPools) -> Iterator[tuple[str, str]]:
    pool = two.decode
    yield "a replica", f"{pool.tp} × {pool.gpu}"
    yield "replicas needed", _count(pool.replicas)
    speed = _count(pool.by_speed) if pool.speed_known else "not known"
    yield "by memory, by speed", f"{_count(pool.by_memory)}, {speed}"
    if pool.running is not None and pool.speed_known:
        yield "running each", f"{pool.running:,.1f} at the peak, {pool.most_running:,} at most"


def _count(replicas: int | None) -> str:
    return "no number is enough" if replicas is None else f"{replicas:,}"


def _policy(part: PolicyFigures, without: int) -> Iterator[tuple[str, str]]:
    yield "policy", part.policy
    yield "implemented", "yes" if part.implemented else f"not here; by {part.by}"
    yield "requests held", f"{part.requests:,} in place of {without:,}"
    yield "a request holds", f"{part.mean_units:,.1f} units on average"
    yield "of the longest remain", f"{part.kept_longest:,} entries"
