"""One GPU's memory against the number of requests: what maps of it are drawn from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kvplan.reports.sweep_rows import Line, label, lines
from kvplan.sweep_grid import first_on_line
from kvplan.sweep_result import CONCURRENCY, NOT_REACHED, Cell, Sweep
from kvplan.units import GIB

PARTS = (
    ("weights", "weights", "#3b6fb6"),
    ("runtime", "engine runtime", "#8e5ea8"),
    ("outside", "outside the budget", "#c9a100"),
    ("free", "left over", "#b9bec6"),
    ("held", "KV cache that the requests hold", "#2aa36b"),
    ("spare", "KV cache to spare", "#a6dcc3"),
    ("over", "missing", "#d6455d"),
)


@dataclass(frozen=True, slots=True)
class Column:
    """Memory at one number of requests, in GiB, in the order of `PARTS`."""

    requests: float
    parts: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Panel:
    """One map: its title, its columns by rising requests, the card in GiB, requests held."""

    title: str
    columns: tuple[Column, ...]
    card: float
    held: int


def panels(sweep: Sweep) -> Iterator[Panel]:
    """A map for each combination of the inputs that are varied beside concurrency."""
    names = [axis.name for axis in sweep.grid.without(CONCURRENCY).axes]
    for number, one in _reached(sweep):
        if one.cell.requests is None or not one.cell.total_bytes:
            continue
        columns = tuple(_column(count, cell) for count, cell in _counts(sweep, number, one.cell))
        title = label(names, one.values)
        yield Panel(title, columns, one.cell.total_bytes / GIB, one.cell.requests)


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


def _column(count: int, cell: Cell) -> Column:
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
    return Column(count, tuple(part / GIB for part in whole))


def caption(panel: Panel) -> str:
    """What the map is of, and how many requests are held."""
    held = f"holds {panel.held:,}" if panel.held else "holds none"
    return f"{panel.title}: {held}" if panel.title else held.capitalize()
