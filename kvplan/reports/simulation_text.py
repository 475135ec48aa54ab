"""A simulation for a terminal: what happened, how the pool filled, then every figure."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from kvplan.reports.clean import clean
from kvplan.reports.figures import counted
from kvplan.reports.simulation_rows import (
    count_rows,
    curve_rows,
    headline,
    seconds,
    spread_rows,
)
from kvplan.reports.sparkline import sparkline
from kvplan.reports.text_console import INDENT, items, lay_out, spaced, table
from kvplan.simulation import Simulation

# Columns of a picture's name and its scale.
_BESIDE = 44


def simulation_text(simulation: Simulation, *, width: int, color: bool, ascii_only: bool) -> str:
    """The whole report.

    Args:
        simulation: What is reported.
        width: Columns, at least 60.
        color: Write ANSI colours. Nothing depends on them.
        ascii_only: Use no character beyond ASCII.
    """
    parts = _parts(simulation, width=width, ascii_only=ascii_only)
    return lay_out(parts, width=width, color=color, ascii_only=ascii_only)


def _parts(simulation: Simulation, *, width: int, ascii_only: bool) -> Iterator[RenderableType]:
    yield Text(headline(simulation), style="bold")
    yield Text(clean(f"{simulation.model} on {simulation.gpu}, {simulation.engine}"))
    yield from _pictures(simulation, width=width, ascii_only=ascii_only)
    spreads = table(
        words=("",), numbers=("mean", "p50", "p95", "p99", "most"), ascii_only=ascii_only
    )
    for spread in spread_rows(simulation):
        spreads.add_row(*spread)
    yield spaced(spreads)
    counts = table(words=("", ""), numbers=(), ascii_only=ascii_only)
    counts.show_header = False
    for name, value in count_rows(simulation):
        counts.add_row(name, value)
    yield spaced(counts)
    if simulation.curve:
        curve = table(words=(), numbers=("cache", "blocks", "hit rate"), ascii_only=ascii_only)
        for point in curve_rows(simulation):
            curve.add_row(*point)
        yield spaced(Text("Whole blocks of prompts found, by size of the cache", style="bold"))
        yield curve
    if simulation.assumed:
        yield spaced(items("Assumed", (Text(clean(text)) for text in simulation.assumed)))


def _pictures(simulation: Simulation, *, width: int, ascii_only: bool) -> Iterator[RenderableType]:
    moments = simulation.timeline
    if not moments:
        return
    room = max(16, width - _BESIDE)
    rows = (
        ("pool in use", [moment.used for moment in moments], simulation.pool.blocks, "block"),
        ("running", [moment.running for moment in moments], None, "request"),
        ("waiting", [moment.waiting for moment in moments], None, "request"),
    )
    end = moments[-1].start_s + moments[-1].seconds
    yield spaced(Text(f"Over {seconds(end)}", style="bold"))
    for name, values, top, unit in rows:
        most = max(values) if top is None else top
        line = sparkline(values, most, width=room, ascii_only=ascii_only)
        yield Text(f"{' ' * INDENT}{name:<12}{line}  of {counted(round(most), unit)}", no_wrap=True)
