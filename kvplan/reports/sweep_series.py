"""What a picture of a sweep shows: requests held against a number that was varied."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kvplan.reports.sweep_rows import Line, label, lines
from kvplan.sweep_grid import Axis
from kvplan.sweep_result import CONCURRENCY, Cell, Sweep


@dataclass(frozen=True, slots=True)
class Point:
    """Requests held at one value.

    Attributes:
        x: The value.
        y: Whole requests over the deployment.
        low, high: Where the range of the runtime's memory leads to, or ``y``.
    """

    x: float
    y: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Series:
    """One curve.

    Attributes:
        label: Values of the other inputs that are varied.
        points: Where at least one request is held, by rising x.
        none_at: Values at which nothing is held, or the point is refused.
    """

    label: str
    points: tuple[Point, ...]
    none_at: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Curves:
    """All curves over one input.

    Attributes:
        name: The input.
        xs: Its values, rising.
        series: Those that hold a request at any of them.
        empty: Labels of the others.
    """

    name: str
    xs: tuple[float, ...]
    series: tuple[Series, ...]
    empty: tuple[str, ...] = ()


def curves(sweep: Sweep) -> Curves | None:
    """Requests held against context, or else the first other number that is varied."""
    axes = sweep.grid.without(CONCURRENCY).axes
    numeric = [axis for axis in axes if is_numeric(axis)]
    if not numeric:
        return None
    over = next((axis for axis in numeric if axis.name == "context"), numeric[0])
    place = axes.index(over)
    names = [axis.name for axis in axes if axis is not over]
    found: dict[tuple[str, ...], list[tuple[float, Cell]]] = {}
    labels: dict[tuple[str, ...], Sequence[Any]] = {}
    for line in lines(sweep):
        others = (*line.values[:place], *line.values[place + 1 :])
        key = tuple(map(repr, others))
        labels[key] = others
        found.setdefault(key, []).append((_x(line, place, over), line.cell))
    every = [_series(label(names, labels[key]), each) for key, each in found.items()]
    return Curves(
        name=over.name,
        xs=tuple(sorted({x for each in found.values() for x, _ in each})),
        series=tuple(one for one in every if one.points),
        empty=tuple(one.label for one in every if not one.points),
    )


def is_numeric(axis: Axis) -> bool:
    """Whether an axis has several values, all of them numbers."""
    return len(axis.values) > 1 and all(
        isinstance(value, int | float) and not isinstance(value, bool) for value in axis.values
    )


def _x(line: Line, place: int, over: Axis) -> float:
    if over.name == "context" and line.cell.planned_context:
        return line.cell.planned_context
    return float(line.values[place])


def _series(name: str, found: Sequence[tuple[float, Cell]]) -> Series:
    held = [(x, cell) for x, cell in found if cell.requests and cell.verdict != "refused"]
    none_at = sorted({x for x, _ in found} - {x for x, _ in held})
    points = sorted((_point(x, cell) for x, cell in held), key=lambda point: point.x)
    return Series(name, tuple(points), tuple(none_at))


def _point(x: float, cell: Cell) -> Point:
    held = float(cell.requests or 0)
    if not cell.tokens or cell.tokens_low is None or cell.tokens_high is None:
        return Point(x, held, held, held)
    pool = (cell.max_concurrency or 0.0) * (cell.replicas or 1)
    low, high = (pool * tokens / cell.tokens for tokens in (cell.tokens_low, cell.tokens_high))
    if pool >= held + (cell.replicas or 1):
        # The engine admits no more, whatever the memory would hold.
        return Point(x, held, min(low, held), held)
    return Point(x, held, min(low, held), max(high, held))
