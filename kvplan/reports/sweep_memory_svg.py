"""A sweep as maps of one GPU's memory against the number of requests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from kvplan.errors import UsageError
from kvplan.reports.sweep_drawing import Frame, area, curve, cut, line, picture, text
from kvplan.reports.sweep_rows import Line, fixed, headline, label, lines
from kvplan.reports.sweep_scales import Scale, even, thinned
from kvplan.sweep_grid import first_on_line
from kvplan.sweep_result import CONCURRENCY, NOT_REACHED, Cell, Sweep
from kvplan.units import GIB

_WIDTH, _HEIGHT, _LEFT, _TOP = 760.0, 260.0, 78.0, 110.0
_GAP, _MOST_PANELS, _MOST_TICKS = 92.0, 6, 10
_PARTS = (
    ("weights", "weights", "#3b6fb6"),
    ("runtime", "engine runtime", "#8e5ea8"),
    ("outside", "outside the budget", "#c9a100"),
    ("free", "left over", "#b9bec6"),
    ("held", "KV cache that the requests hold", "#2aa36b"),
    ("spare", "KV cache to spare", "#a6dcc3"),
    ("over", "missing", "#d6455d"),
)


@dataclass(frozen=True, slots=True)
class _Column:
    """Memory at one number of requests, in GiB, in the order of `_PARTS`."""

    requests: float
    parts: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class _Panel:
    title: str
    columns: tuple[_Column, ...]
    card: float
    held: int


def sweep_memory_svg(sweep: Sweep, *, dark: bool = True) -> str:
    """A panel for each combination of the other inputs that are varied, six at most.

    Args:
        sweep: What was found.
        dark: Follow the reader's page where that is dark.

    Raises:
        UsageError: all points are refused.
    """
    panels = list(islice(_panels(sweep), _MOST_PANELS))
    if not panels:
        raise UsageError(
            "There is no memory to draw: all points are refused.", hint="--format text says why."
        )
    every = sum(1 for _ in _panels(sweep))
    title = "One GPU's memory, by requests held at once"
    said = f"{headline(sweep)} {len(panels)} of {every} maps." if every > len(panels) else ""
    parts = [
        text(_LEFT, 28, title, size=18, bold=True),
        text(_LEFT, 50, cut(fixed(sweep), 110), size=13),
        text(_LEFT, 68, said or headline(sweep)),
    ]
    for place, panel in enumerate(panels):
        frame = Frame(_LEFT, _TOP + place * (_HEIGHT + _GAP), _WIDTH, _HEIGHT)
        parts += _panel(panel, frame)
    bottom = _TOP + len(panels) * (_HEIGHT + _GAP) - 22
    parts += _legend(bottom)
    return picture(
        parts, title=title, about=fixed(sweep), width=_LEFT + _WIDTH + 24, height=bottom + 62,
        dark=dark,
    )  # fmt: skip


def _panels(sweep: Sweep) -> Iterator[_Panel]:
    names = [axis.name for axis in sweep.grid.without(CONCURRENCY).axes]
    for number, one in _reached(sweep):
        if one.cell.requests is None or not one.cell.total_bytes:
            continue
        columns = tuple(_column(count, cell) for count, cell in _counts(sweep, number, one.cell))
        title = label(names, one.values)
        yield _Panel(title, columns, one.cell.total_bytes / GIB, one.cell.requests)


def _reached(sweep: Sweep) -> Iterator[tuple[int, Line]]:
    """Lines with their numbers."""
    stride, length = sweep.grid.line(CONCURRENCY)
    size = sweep.grid.without(CONCURRENCY).size
    numbers = (
        number
        for number in range(size)
        if sweep.verdicts[first_on_line(number, stride, length)] != NOT_REACHED
    )
    yield from zip(numbers, lines(sweep), strict=True)


def _counts(sweep: Sweep, number: int, cell: Cell) -> Sequence[tuple[int, Cell]]:
    """Numbers of requests with what was worked out: as asked for, or a third more than are held."""
    axis = sweep.grid.axis(CONCURRENCY)
    if axis is not None and len(axis.values) > 1:
        stride, length = sweep.grid.line(CONCURRENCY)
        first = first_on_line(number, stride, length)
        found = [
            (count, sweep.cell(first + place * stride)) for place, count in enumerate(axis.values)
        ]
        return sorted(found, key=lambda each: each[0])
    most = max(8, 4 * (cell.requests or 0) // 3)
    return [(count, cell) for count in sorted({most * step // 40 for step in range(41)})]


def _column(count: int, cell: Cell) -> _Column:
    each = -(-count // (cell.replicas or 1)) * (cell.bytes_per_request or 0)
    pool = max(0, cell.kv_bytes or 0)
    whole = (
        max(0, cell.weights_bytes or 0),
        max(0, cell.runtime_bytes or 0),
        max(0, cell.outside_bytes or 0),
        max(0, cell.free_bytes or 0),
        min(each, pool),
        max(0, pool - each),
        max(0, each - pool),
    )
    return _Column(count, tuple(part / GIB for part in whole))


def _panel(panel: _Panel, frame: Frame) -> Iterator[str]:
    most = max(sum(column.parts) for column in panel.columns)
    ticks = even(min(most, 1.6 * panel.card))
    up = Scale(0, ticks[-1], frame.bottom, frame.top)
    counts = [column.requests for column in panel.columns]
    across = Scale(counts[0], counts[-1], frame.left, frame.right)
    yield text(frame.left, frame.top - 12, cut(_caption(panel), 75), size=13, bold=True)
    yield from _stack(panel, across, up)
    for tick in ticks:
        yield line(frame.left, up.at(tick), frame.right, up.at(tick))
        yield text(frame.left - 8, up.at(tick) + 4, f"{tick:,g}", anchor="end")
    for count in thinned(_marks(counts), _MOST_TICKS):
        yield text(across.at(count), frame.bottom + 18, f"{count:,g}", anchor="middle")
    card = up.at(panel.card)
    yield curve([(frame.left, card), (frame.right, card)], "#d6455d", "6 3")
    said = f"dashed: the card, {panel.card:,.1f} GiB"
    yield text(frame.right, frame.top - 12, said, anchor="end", size=11)
    yield line(frame.left, frame.bottom, frame.right, frame.bottom, strong=True)
    yield line(frame.left, frame.top, frame.left, frame.bottom, strong=True)
    middle = frame.left + frame.width / 2
    yield text(middle, frame.bottom + 38, "requests at once (whole deployment)", anchor="middle")
    yield text(22, frame.top + frame.height / 2, "GiB on one GPU", anchor="middle", turned=True)


def _caption(panel: _Panel) -> str:
    held = f"holds {panel.held:,}" if panel.held else "holds none"
    return f"{panel.title}: {held}" if panel.title else held.capitalize()


def _marks(counts: list[float]) -> tuple[float, ...]:
    if len(counts) <= _MOST_TICKS:
        return tuple(counts)
    return tuple(tick for tick in even(counts[-1]) if counts[0] <= tick <= counts[-1])


def _stack(panel: _Panel, across: Scale, up: Scale) -> Iterator[str]:
    below = [0.0] * len(panel.columns)
    for place, (_, _, color) in enumerate(_PARTS):
        above = [
            low + column.parts[place] for low, column in zip(below, panel.columns, strict=True)
        ]
        if any(column.parts[place] for column in panel.columns):
            xs = [across.at(column.requests) for column in panel.columns]
            top = [(x, up.at(height)) for x, height in zip(xs, above, strict=True)]
            bottom = [(x, up.at(height)) for x, height in zip(xs, below, strict=True)]
            yield area([*top, *reversed(bottom)], color, 0.9)
        below = above


def _legend(top: float) -> Iterator[str]:
    for place, (_, name, color) in enumerate(_PARTS):
        x, y = _LEFT + place % 3 * 255, top + place // 3 * 22
        corners = [(x, y - 10), (x + 12, y - 10), (x + 12, y + 2), (x, y + 2)]
        yield area(corners, color, 0.9)
        yield text(x + 18, y, name)
