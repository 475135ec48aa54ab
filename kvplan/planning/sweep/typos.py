"""Values that no point of a sweep could use: mistakes of whoever typed them, not verdicts."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from kvplan.errors import KvplanError, UnknownNameError, UsageError, nearest
from kvplan.plan import Reason
from kvplan.sweep_grid import Axis, Grid, first_on_line
from kvplan.sweep_result import CONCURRENCY, NOT_REACHED, Sweep

_USAGE = frozenset({UsageError.slug, UnknownNameError.slug})
# Inputs that name a place or a size: what one engine makes of them is a verdict.
_VERDICTS = frozenset(
    {"model", "gpu", "engine", "tp", "pp", "dp", "dcp", "context", CONCURRENCY, "images"}
)


def typos(
    grid: Grid, whys: Mapping[int, Reason | None], inputs: Collection[str]
) -> Iterator[KvplanError]:
    """One error for each value that an engine did not know at any point.

    Args:
        grid: What was varied.
        whys: For each point that was reached, why it is refused, or None.
        inputs: Names that are no engine options, for the nearest of them.
    """
    if whys and all(_is_usage(why) for why in whys.values()):
        unlike = {why.message: why for why in whys.values() if why}
        for message, why in unlike.items():
            named = (axis for axis in grid.axes if repr(axis.name) in message)
            yield _error(why, next(named, None), inputs)
        return
    for axis, stride in zip(grid.axes, grid.strides, strict=True):
        if axis.name not in _VERDICTS:
            yield from _of_axis(axis, stride, whys, inputs)


def whys_of(sweep: Sweep) -> dict[int, Reason | None]:
    """For each line of points that differ in the concurrency alone, why it is refused."""
    found: dict[int, Reason | None] = {}
    stride, length = sweep.grid.line(CONCURRENCY)
    for line in range(sweep.grid.without(CONCURRENCY).size):
        point = first_on_line(line, stride, length)
        if sweep.verdicts[point] != NOT_REACHED:
            cell = sweep.cell(point)
            refused = cell.verdict == "refused" and cell.reason_code and cell.reason
            found[line] = (
                Reason(code=cell.reason_code or "", message=cell.reason or "", hint=cell.hint)
                if refused
                else None
            )
    return found


def _is_usage(why: Reason | None) -> bool:
    return why is not None and why.code in _USAGE


def _of_axis(
    axis: Axis, stride: int, whys: Mapping[int, Reason | None], inputs: Collection[str]
) -> Iterator[KvplanError]:
    wrong: dict[int, Reason] = {}
    right = set[int]()
    for point, why in whys.items():
        value = point // stride % len(axis.values)
        if why is not None and _is_usage(why):
            wrong.setdefault(value, why)
        else:
            right.add(value)
    for value in sorted(set(wrong) - right):
        yield _error(wrong[value], axis, inputs)


def _error(why: Reason, axis: Axis | None, inputs: Collection[str]) -> KvplanError:
    unknown = why.code == UnknownNameError.slug
    hint = why.hint
    if axis is not None and unknown and axis.name not in inputs:
        hint = nearest(axis.name, inputs, cutoff=0.75) or hint
    kind = UnknownNameError if unknown else UsageError
    return kind(why.message, hint=hint, location=f"--vary {axis.name}" if axis else None)
