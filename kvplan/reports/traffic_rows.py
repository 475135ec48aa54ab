"""A traffic plan as titled rows of label and value, which every readable format shows."""

from __future__ import annotations

from collections.abc import Iterator

from kvplan.reports.figures import counted, size
from kvplan.reports.section import Section, percent
from kvplan.reports.simulation_rows import seconds
from kvplan.reports.traffic_part_rows import part_sections
from kvplan.traffic_plan import LengthSummary, LoadOnPools, PrefixUseOfPools, TrafficPlan

__all__ = ["Section", "headline", "percent", "sections", "sparkline"]

_BESIDE_MEMORY = ("first_token_too_late", "step_too_slow", "analysis_withdrawn")
_BARS = "▁▂▃▄▅▆▇█"
_ASCII_BARS = "_.:-=+*#"


def headline(plan: TrafficPlan) -> str:
    """The answer in one sentence."""
    held = plan.held
    if plan.verdict == "refused":
        return f"The engine refuses {plan.model.id}."
    least = "" if held.offered else "at least "
    start = f"Holds {least}{counted(held.requests, 'request')} of this traffic at a risk of "
    start += percent(plan.risk)
    if plan.load is None:
        return start + "."
    when = "in the busiest hour " if plan.load.peak_factor > 1 else ""
    short = f"{when}there is too little memory {percent(plan.load.peak_risk)} of the time"
    if plan.verdict == "fits":
        return f"Fits: {short}."
    if plan.load.peak_risk <= plan.risk:
        # There is memory; something else is short, and a note says what.
        why = next((one.message for one in plan.reasons if one.code in _BESIDE_MEMORY), "")
        return f"Does not fit. {why}".strip()
    needed = plan.load.replicas_needed
    remedy = f"; {counted(needed, 'replica')} would do." if needed else "."
    return f"Does not fit: {short}{remedy}"


def sections(plan: TrafficPlan, *, ascii_only: bool = False) -> Iterator[Section]:
    """All of the plan but its sentences."""
    yield Section("Requests held at once", tuple(_held(plan)))
    yield Section("What a request holds", tuple(_pools(plan)))
    yield Section("Lengths in tokens", tuple(_lengths(plan)))
    if plan.load is not None:
        yield Section("Load", tuple(_load(plan.load, plan.risk, ascii_only=ascii_only)))
    if plan.prefix is not None:
        yield Section("Shared prefix", tuple(_prefix(plan.prefix)))
    yield from part_sections(plan)


def _held(plan: TrafficPlan) -> Iterator[tuple[str, str]]:
    held = plan.held
    count = f"{held.requests:,}" if held.offered else f"{held.requests:,} to {held.at_most:,}"
    yield f"at a risk of {percent(plan.risk)}", count
    if held.simulated is not None:
        agrees = "the analysis agrees" if held.simulated.agrees else "the analysis does not agree"
        yield "found by simulation", f"{held.simulated.requests:,}: {agrees}"
    yield "limited by", held.limited_by
    yield "if all were average", f"{held.on_average:,.1f}"
    yield "if all were the longest", f"{held.at_longest:,}"


def _pools(plan: TrafficPlan) -> Iterator[tuple[str, str]]:
    for pool in plan.pools:
        yield (
            f"{pool.name}: {pool.count:,} {pool.unit}s",
            f"{pool.mean:,.1f} on average, ± {pool.deviation:,.1f}, at most {pool.most:,}",
        )


def _lengths(plan: TrafficPlan) -> Iterator[tuple[str, str]]:
    if plan.requests_read is not None:
        failed = f", {plan.requests_failed:,} without an output left out"
        yield "read", f"{plan.requests_read:,} requests" + (failed if plan.requests_failed else "")
    yield "prompt", _summary(plan.prompt)
    if plan.output is not None:
        yield "output", _summary(plan.output)
    yield "together", _summary(plan.total)
    for fit in plan.fits:
        given = ", ".join(f"p{share:g} {tokens:,}" for share, tokens in fit.given)
        fitted = ", ".join(f"p{share:g} {tokens:,.0f}" for share, tokens in fit.fitted)
        law = f"median {fit.median:,.0f}, sigma {fit.sigma:.3f}"
        yield f"lognormal for {given}", f"{law}: {fitted} (off by {percent(fit.worst)} at most)"


def _summary(part: LengthSummary) -> str:
    return (
        f"mean {part.mean:,.1f}, p50 {part.p50:,}, p95 {part.p95:,}, p99 {part.p99:,},"
        f" longest {part.max:,}"
    )


def _load(load: LoadOnPools, risk: float, *, ascii_only: bool) -> Iterator[tuple[str, str]]:
    if load.users is not None:
        yield "users", f"{load.users:,}"
    yield "requests a second", f"{load.rate_per_s:,.3f} over the day"
    yield "life of a request", f"{load.life_s:,.1f} s"
    yield "at once", f"{load.concurrent:,.1f} on average, {load.peak_concurrent:,.1f} at the peak"
    yield "too little", f"{percent(load.risk)} at the mean, {percent(load.peak_risk)} at the peak"
    if load.most_rate_per_s is not None:
        yield f"highest rate at {percent(risk)}", f"{load.most_rate_per_s:,.3f} a second"
    needed = "more than 4,096" if load.replicas_needed is None else f"{load.replicas_needed:,}"
    yield "replicas", f"{load.replicas:,} planned, {needed} needed"
    if load.peak_factor > 1:
        yield "requests at once, 0 to 23 h", sparkline(load, ascii_only=ascii_only)
        yield "hours above the risk", _hours(load, risk)


def sparkline(load: LoadOnPools, *, ascii_only: bool) -> str:
    """The day as 24 bars."""
    bars = _ASCII_BARS if ascii_only else _BARS
    most = max(hour.concurrent for hour in load.hours)
    last = len(bars) - 1
    return "".join(bars[round(hour.concurrent / most * last)] for hour in load.hours)


def _hours(load: LoadOnPools, risk: float) -> str:
    above = [f"{hour.hour}" for hour in load.hours if hour.risk > risk]
    return ", ".join(above) if above else "none"


def _prefix(prefix: PrefixUseOfPools) -> Iterator[tuple[str, str]]:
    yield "tokens", f"{prefix.tokens:,}, {prefix.copies:,} × {prefix.scope}"
    yield "held once", f"{prefix.units_once:,} units, {prefix.versions_alive:,.3f} versions alive"
    saved = f"{prefix.units_saved:,.0f} units"
    if prefix.bytes_saved is not None:
        saved += f", {size(prefix.bytes_saved)} on one GPU"
    yield "saved", saved
    if prefix.change_units:
        more = f"{prefix.change_units:,} units more"
        if prefix.change_bytes is not None:
            more += f", {size(prefix.change_bytes)} on one GPU"
        if prefix.change_s is not None:
            more += f", for up to {seconds(prefix.change_s)}"
        yield "while a version changes", more
    if prefix.hit_rate is not None:
        yield "found in the cache", percent(prefix.hit_rate)
