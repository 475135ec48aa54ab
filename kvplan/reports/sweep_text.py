"""A sweep for a terminal: how many points fit, a table, small curves, why points are refused."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from math import log

from rich.console import RenderableType
from rich.text import Text

from kvplan.reports.clean import clean
from kvplan.reports.sparkline import sparkline
from kvplan.reports.sweep_memory_text import memory_maps
from kvplan.reports.sweep_rows import cells, fixed, headline, lines, reasons, titles, value
from kvplan.reports.sweep_series import Curves, curves
from kvplan.reports.text_console import INDENT, items, lay_out, spaced, table
from kvplan.reports.text_tables import tightened
from kvplan.sweep_result import CONCURRENCY, Sweep

_MOST_ROWS, _MOST_REASONS, _MOST_CURVES = 60, 8, 12
_STYLES = {"fits": "green", "does not fit": "red", "refused": "yellow"}
_BESIDE = 24
_WIDE = 100


def sweep_text(
    sweep: Sweep, *, width: int, color: bool, ascii_only: bool, plot: str | None = None
) -> str:
    """The whole report.

    Args:
        sweep: What was found.
        width: Columns, at least 60.
        color: Write ANSI colours. Nothing depends on them.
        ascii_only: Use no character beyond ASCII.
        plot: ``concurrency`` or ``memory``; None: curves if there are any, else memory where
            concurrency is varied.
    """
    parts = _parts(sweep, width=width, ascii_only=ascii_only, plot=plot)
    return lay_out(parts, width=width, color=color, ascii_only=ascii_only)


def _parts(
    sweep: Sweep, *, width: int, ascii_only: bool, plot: str | None
) -> Iterator[RenderableType]:
    yield Text(headline(sweep), style="bold")
    yield Text(clean(fixed(sweep)))
    words, numbers = titles(sweep)
    made = table(words=words, numbers=numbers, ascii_only=ascii_only)
    if width < _WIDE:
        made = tightened(made)
    for column in made.columns[: len(words)]:
        column.min_width = len(str(column.header))
    found = lines(sweep)
    for line in islice(found, _MOST_ROWS):
        *texts, verdict = (clean(text) for text in cells(sweep, line))
        made.add_row(*texts, Text(verdict, style=_STYLES.get(verdict, "")))
    yield spaced(made)
    more = sum(1 for _ in found)
    if more:
        yield Text(f"{more:,} more rows: --format csv or jsonl has all of them.")
    drawn = curves(sweep)
    curved = drawn is not None and len(drawn.xs) > 1
    asked = sweep.grid.axis(CONCURRENCY)
    several = asked is not None and len(asked.values) > 1
    if plot == "memory" or (plot is None and several and not curved):
        yield from memory_maps(sweep, width=width, ascii_only=ascii_only)
    elif drawn is not None and curved:
        yield from _curves(drawn, width=width, ascii_only=ascii_only)
    why = list(reasons(sweep))
    if why:
        shown = [Text(clean(text)) for text in why[:_MOST_REASONS]]
        if len(why) > _MOST_REASONS:
            shown.append(Text(f"and {len(why) - _MOST_REASONS:,} more reasons"))
        yield spaced(items("Why not", shown))


def _curves(drawn: Curves, *, width: int, ascii_only: bool) -> Iterator[RenderableType]:
    first, last = (_number(drawn.name, drawn.xs[place]) for place in (0, -1))
    title = f"Requests held, {drawn.name} {first} to {last} (bars are logarithms)"
    yield spaced(Text(clean(title), style="bold"))
    shown = drawn.series[:_MOST_CURVES]
    top = max((point.y for one in shown for point in one.points), default=0)
    names = [clean(one.label or "requests") for one in shown]
    beside = min(max(map(len, names), default=0), width // 2)
    for name, one in zip(names, shown, strict=True):
        heights = {point.x: log(1 + point.y) for point in one.points}
        bars = [heights.get(x, 0.0) for x in drawn.xs]
        room = max(8, width - beside - _BESIDE)
        line = sparkline(bars, log(1 + top), width=room, ascii_only=ascii_only)
        held = {point.x: f"{point.y:,.0f}" for point in one.points}
        ends = " to ".join(held.get(x, "none") for x in (drawn.xs[0], drawn.xs[-1]))
        yield Text(f"{' ' * INDENT}{name[:beside]:<{beside}}  {line}  {ends}", no_wrap=True)
    for count, words in (
        (len(drawn.series) - len(shown), "more curves"),
        (len(drawn.empty), "more hold no request anywhere"),
    ):
        if count:
            yield Text(f"{' ' * INDENT}{count:,} {words}")


def _number(name: str, x: float) -> str:
    return value(name, int(x) if x == int(x) else x)
