"""Maps of one GPU's memory against the number of requests, for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice

from rich.console import RenderableType
from rich.text import Text

from kvplan.reports.clean import clean
from kvplan.reports.memory_bar import Kind, cells
from kvplan.reports.sweep_memory_maps import PARTS, Column, Panel, caption, panels
from kvplan.reports.text_bar import LOOKS
from kvplan.reports.text_console import INDENT, spaced
from kvplan.sweep_result import Sweep

_MOST_PANELS, _MOST_BARS = 4, 10
# Room beside a bar: the number of requests, edges, and what is missing.
_BESIDE = 34
_KINDS: Mapping[str, Kind] = {"held": "kv", "spare": "kv_spare", "over": "missing"}
_MILLI = 1000


def memory_maps(sweep: Sweep, *, width: int, ascii_only: bool) -> Iterator[RenderableType]:
    """A map for each combination of the other inputs, four at most; a bar a number of requests."""
    found = panels(sweep)
    shown = list(islice(found, _MOST_PANELS))
    if not shown:
        return
    yield spaced(Text("One GPU's memory, by requests at once", style="bold"))
    for panel in shown:
        yield Text(f"{' ' * INDENT}{clean(caption(panel))} (card: {panel.card:,.1f} GiB)")
        columns = _some(panel)
        beside = max(len(f"{column.requests:,g}") for column in columns)
        for column in columns:
            yield _bar(column, panel, beside, max(20, width - _BESIDE), ascii_only=ascii_only)
    yield from _legend(ascii_only=ascii_only)
    left = sum(1 for _ in found)
    if left:
        yield Text(f"{' ' * INDENT}{left:,} more maps: --plot memory --output memory.svg")


def _some(panel: Panel) -> tuple[Column, ...]:
    """Some of the columns, evenly, the first and the last among them."""
    columns = panel.columns
    if len(columns) <= _MOST_BARS:
        return columns
    step = (len(columns) - 1) / (_MOST_BARS - 1)
    return tuple(columns[round(step * place)] for place in range(_MOST_BARS))


def _bar(column: Column, panel: Panel, beside: int, width: int, *, ascii_only: bool) -> Text:
    inside = [max(0, round(part * _MILLI)) for part in column.parts[:-1]]
    missing = column.parts[-1] + max(0.0, sum(column.parts[:-1]) - panel.card)
    edge = "|" if ascii_only else "┃"
    row = Text(f"{' ' * (2 * INDENT)}{column.requests:>{beside},g} {edge}", no_wrap=True)
    for (name, _, _), count in zip(PARTS[:-1], cells(tuple(inside), width), strict=True):
        row.append_text(_mark(name, count, ascii_only=ascii_only))
    row.append(edge)
    if missing > 1 / _MILLI:
        row.append(f" {missing:,.1f} GiB missing", style=LOOKS["missing"].style)
    return row


def _mark(name: str, count: int, *, ascii_only: bool) -> Text:
    look = LOOKS[_kind(name)]
    return Text((look.letter if ascii_only else look.glyph) * count, style=look.style)


def _kind(name: str) -> Kind:
    for kind in LOOKS:
        if kind == name:
            return kind
    return _KINDS[name]


def _legend(*, ascii_only: bool) -> Iterator[Text]:
    """Two lines of marks with their words."""
    for parts in (PARTS[:3], PARTS[3:-1]):
        words = Text(" " * INDENT)
        for name, label, _ in parts:
            words.append_text(_mark(name, 2, ascii_only=ascii_only))
            words.append(f" {label}   ")
        yield words
