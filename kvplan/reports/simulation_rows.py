"""A simulation's figures as rows of words, which its reports lay out."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kvplan.reports.figures import counted
from kvplan.simulation import Simulation, Spread
from kvplan.units import format_bytes, format_count

SpreadRow = tuple[str, str, str, str, str, str]
"""Name, mean, p50, p95, p99, most."""
_MINUTE, _HOUR = 60.0, 3600.0


def seconds(value: float) -> str:
    """A time for people.

    >>> seconds(0.0123), seconds(2.5), seconds(150), seconds(7200), seconds(0)
    ('12.3 ms', '2.50 s', '2.5 min', '2.0 h', '0 s')
    """
    if value >= 2 * _HOUR:
        return f"{value / _HOUR:,.1f} h"
    if value >= 2 * _MINUTE:
        return f"{value / _MINUTE:,.1f} min"
    if value >= 1:
        return f"{value:,.2f} s"
    return f"{value * 1000:,.1f} ms" if value else "0 s"


def percent(share: float) -> str:
    """A share.

    >>> percent(0.5), percent(0.00012), percent(0)
    ('50.0 %', '0.01 %', '0.0 %')
    """
    return f"{share:.2%}".replace("%", " %") if 0 < share < 0.01 else f"{100 * share:.1f} %"


def headline(simulation: Simulation) -> str:
    """What happened, in a sentence."""
    made, waited = simulation.requests, simulation.waiting.for_blocks
    parts = [f"{counted(made.finished, 'request')} finished"]
    if simulation.status == "interrupted":
        parts = [f"Interrupted: {parts[0]}", f"{format_count(made.unfinished)} on their way"]
    if made.refused:
        parts.append(f"{format_count(made.refused)} refused")
    if waited:
        parts.append(f"{format_count(waited)} waited for blocks")
    if simulation.preemptions.count:
        parts.append(f"{counted(simulation.preemptions.count, 'preemption')}")
    return ", ".join(parts) + f", in {seconds(simulation.simulated_s)}."


def spread_rows(simulation: Simulation) -> Iterator[SpreadRow]:
    """Figures that are distributed."""
    blocks = simulation.pool.blocks
    if simulation.used_blocks is not None:
        yield _row("pool in use", simulation.used_blocks, lambda value: percent(value / blocks))
    if simulation.running is not None:
        yield _row("requests running", simulation.running, _requests)
    if simulation.waiting.seconds is not None:
        yield _row("wait for admission", simulation.waiting.seconds, seconds)
    latency = simulation.latency
    if latency.first_token is not None:
        yield _row("time to first token", latency.first_token, seconds)
    if latency.between_tokens is not None:
        yield _row("between tokens", latency.between_tokens, seconds)
    if latency.whole is not None:
        yield _row("whole request", latency.whole, seconds)


def _requests(value: float) -> str:
    return f"{value:,.1f}".removesuffix(".0")


def _row(name: str, spread: Spread, write: Callable[[float], str]) -> SpreadRow:
    values = (spread.mean, spread.p50, spread.p95, spread.p99, spread.max)
    mean, p50, p95, p99, most = (write(value) for value in values)
    return name, mean, p50, p95, p99, most


def count_rows(simulation: Simulation) -> Iterator[tuple[str, str]]:
    """Figures that are one number each, with their names."""
    made, prefixes, waiting = simulation.requests, simulation.prefixes, simulation.waiting
    yield (
        "requests",
        f"{format_count(made.arrived)} arrived, {format_count(made.finished)} finished",
    )
    if made.refused:
        yield "refused", f"{format_count(made.refused)} longer than the model or the pool allows"
    if made.cut:
        yield "cut short", f"{format_count(made.cut)} at the longest context"
    yield "waited for blocks", format_count(waiting.for_blocks)
    if waiting.for_sequences:
        yield "waited for others", f"{format_count(waiting.for_sequences)} (as many run as may)"
    lost = simulation.preemptions
    if lost.count:
        yield (
            "preemptions",
            (
                f"{format_count(lost.count)} of {counted(lost.requests, 'request')},"
                f" {format_count(lost.recomputed_tokens)} tokens computed again"
            ),
        )
    else:
        yield "preemptions", "0"
    yield (
        "prefix hits",
        f"{percent(prefixes.hit_rate)} of {format_count(prefixes.prompt_tokens)} prompt tokens",
    )
    for tier in prefixes.tiers:
        yield (
            f"from {tier.name}",
            (
                f"{format_count(tier.hit_tokens)} tokens, {format_bytes(tier.read_bytes)} read,"
                f" {format_bytes(tier.written_bytes)} written"
            ),
        )
    yield from _throughput_rows(simulation)


def _throughput_rows(simulation: Simulation) -> Iterator[tuple[str, str]]:
    rate = simulation.throughput
    yield (
        "throughput",
        (
            f"{rate.requests_per_s:,.2f} requests/s, {rate.output_tokens_per_s:,.0f} generated and"
            f" {rate.computed_tokens_per_s:,.0f} computed tokens/s"
        ),
    )
    if rate.goodput_per_s is not None:
        limits = (
            ("first token", rate.first_token_limit_s),
            ("between tokens", rate.between_tokens_limit_s),
        )
        kept = ", ".join(f"{name} {seconds(limit)}" for name, limit in limits if limit is not None)
        share = percent(rate.good_share or 0.0)
        yield "goodput", f"{rate.goodput_per_s:,.2f} requests/s, {share} kept {kept}"


def curve_rows(simulation: Simulation) -> Iterator[tuple[str, str, str]]:
    """Size, blocks and hit rate of caches; only sizes that change something."""
    before = None
    for point in simulation.curve:
        shown = percent(point.hit_rate)
        if shown != before:
            yield format_bytes(point.bytes), format_count(point.blocks), shown
        before = shown
