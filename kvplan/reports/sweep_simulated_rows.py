"""A sweep of simulations: its table, text, Markdown, and picture."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from kvplan.errors import UsageError
from kvplan.plan import Reason
from kvplan.reports.clean import clean, markdown_text
from kvplan.reports.simulation_rows import percent, seconds
from kvplan.reports.sweep_rows import fixed_words, label, value
from kvplan.reports.sweep_series import Curves, Point, Series, is_numeric
from kvplan.reports.sweep_svg import Words, drawing
from kvplan.reports.text_console import items, lay_out, spaced, table
from kvplan.sweep_simulated import SimulatedSweep
from kvplan.units import format_count

_MOST_ROWS = 60
_TITLES = (
    "pool p95", "wait p95", "preempted", "prefix hits", "TTFT p95", "TPOT p95", "requests/s",
    "good/s",
)  # fmt: skip


def headline(found: SimulatedSweep) -> str:
    """How many points there are."""
    done, refused = len(found.points), found.refused
    parts = [f"{format_count(done - refused)} simulated"]
    if refused:
        parts.append(f"{format_count(refused)} refused")
    whole = format_count(found.grid.size)
    lead = "Interrupted" if found.status == "interrupted" else f"{whole} points"
    after = f" of {whole}" if found.status == "interrupted" else ""
    return f"{lead}: {', '.join(parts)}{after}."


def cells(found: SimulatedSweep, row: Mapping[str, Any]) -> tuple[str, ...]:
    """A row in the words of a table."""
    inputs = tuple(value(axis.name, row[axis.name]) for axis in found.grid.axes)
    if row["status"] == "refused":
        return (*inputs, "refused", *("",) * (len(_TITLES) - 1))
    good = row["goodput_per_s"]
    return (
        *inputs,
        _said(percent, row["occupancy_p95"]),
        _said(seconds, row["waiting_s_p95"]),
        format_count(row["preemptions"]),
        percent(row["hit_rate"]),
        _said(seconds, row["first_token_s_p95"]),
        _said(seconds, row["between_tokens_s_p95"]),
        f"{row['requests_per_s']:,.2f}",
        "-" if good is None else f"{good:,.2f}",
    )


def _said(write: Any, figure: float | None) -> str:
    return "-" if figure is None else str(write(figure))


def fixed(found: SimulatedSweep) -> str:
    """What is the same at all points."""
    return fixed_words(found.inputs, found.grid)


def reasons(found: SimulatedSweep) -> Iterator[str]:
    """Why points are refused, each reason once."""
    said = [each.message for each in found.results if isinstance(each, Reason)]
    for message in dict.fromkeys(said):
        count = said.count(message)
        yield message if count == 1 else f"{message} ({format_count(count)} rows)"


def simulated_text(found: SimulatedSweep, *, width: int, color: bool, ascii_only: bool) -> str:
    """The report for a terminal."""
    parts = _parts(found, ascii_only=ascii_only)
    return lay_out(parts, width=width, color=color, ascii_only=ascii_only)


def _parts(found: SimulatedSweep, *, ascii_only: bool) -> Iterator[RenderableType]:
    yield Text(headline(found), style="bold")
    yield Text(clean(fixed(found)))
    names = tuple(axis.name for axis in found.grid.axes)
    made = table(words=(), numbers=(), ascii_only=ascii_only)
    for name in names:
        made.add_column(clean(name), overflow="fold", min_width=4)
    for title in _TITLES:
        made.add_column(title.replace(" ", "\n"), justify="right", no_wrap=True)
    rows = iter(found.rows())
    for row in islice(rows, _MOST_ROWS):
        made.add_row(*map(clean, cells(found, row)))
    yield spaced(made)
    more = sum(1 for _ in rows)
    if more:
        yield Text(f"{more:,} more rows: --format csv or jsonl has all of them.")
    why = [Text(clean(text)) for text in reasons(found)]
    if why:
        yield spaced(items("Refused", why[:_MOST_ROWS]))


def simulated_markdown(found: SimulatedSweep) -> str:
    """The report for a pull request."""
    names = tuple(axis.name for axis in found.grid.axes)
    made = [
        f"**{markdown_text(headline(found))}**",
        "",
        markdown_text(fixed(found)),
        "",
        f"| {' | '.join(map(markdown_text, (*names, *_TITLES)))} |",
        f"|{'---|' * len(names)}{'--:|' * len(_TITLES)}",
    ]
    made += (f"| {' | '.join(map(markdown_text, cells(found, row)))} |" for row in found.rows())
    why = list(reasons(found))
    if why:
        made += ["", "Refused:", "", *(f"- {markdown_text(text)}" for text in why)]
    return "\n".join(made) + "\n"


def simulated_svg(found: SimulatedSweep, *, dark: bool = True) -> str:
    """How full the pool is in 95 % of the time, against the first number that is varied.

    Raises:
        UsageError: no input was varied whose values are numbers.
    """
    over = next((axis for axis in found.grid.axes if is_numeric(axis)), None)
    if over is None:
        raise UsageError(
            "A curve needs an input with several numbers.", hint="Write --vary rate=1..16*2."
        )
    names = [axis.name for axis in found.grid.axes if axis is not over]
    points: dict[str, list[Point]] = {}
    none_at: dict[str, list[float]] = {}
    for row in found.rows():
        name = label(names, [row[each] for each in names])
        x, share = float(row[over.name]), row["occupancy_p95"]
        points.setdefault(name, [])
        if share is None:
            none_at.setdefault(name, []).append(x)
        else:
            points[name].append(Point(x, 100 * share, 100 * share, 100 * share))
    series = [
        Series(name, tuple(sorted(each, key=_x)), tuple(none_at.get(name, ())))
        for name, each in points.items()
    ]
    drawn = Curves(
        over.name,
        tuple(sorted(map(float, over.values))),
        tuple(one for one in series if one.points),
        tuple(one.label for one in series if not one.points),
    )
    words = Words(
        title=f"How full the pool is, by {over.name}",
        about=fixed(found),
        said=headline(found),
        up="share of the pool in use, 95th percentile of the time (%)",
        unit="% of the pool",
        none="refused",
    )
    return drawing(drawn, words, dark=dark)


def _x(point: Point) -> float:
    return point.x
