"""A sweep that `kvplan sweep --format json` wrote."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

from kvplan.errors import InputError, shown
from kvplan.plan import Verdict
from kvplan.sources import stdin
from kvplan.sources.files import read_whole
from kvplan.sources.json_reader import parse_json_object
from kvplan.sweep_grid import Axis, Grid, line_of
from kvplan.sweep_result import CONCURRENCY, FIGURES, NOT_REACHED, SCHEMA, VERDICTS, Cell, Sweep

_LARGEST = 256 * 2**20
_MOST_POINTS = 1_000_000
_FLOATS = ("max_concurrency", "bytes_per_token")
_HOLDS_FEWER = "holds_fewer"


def read_sweep(path: Path) -> Sweep:
    """Reads a sweep; ``-`` is standard input.

    Raises:
        UsageError: there is no such file.
        InputError: it is none, or of another version.
    """
    read = stdin.read if str(path) in stdin.NAMES else None
    content = read(_LARGEST + 1) if read else read_whole(path, limit=_LARGEST)
    data = parse_json_object(content, str(path), limit=_LARGEST)
    try:
        return _sweep(data)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"This is not a sweep ({_said(error)}).",
            hint="Write one with kvplan sweep --format json.",
            location=str(path),
        ) from None


def _said(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"{shown(str(error.args[0]))} is missing"
    return str(error)[:120]


def _sweep(data: Mapping[str, Any]) -> Sweep:
    if data.get("schema") != SCHEMA:
        raise ValueError(f"its schema is not {SCHEMA}")
    grid = Grid(tuple(Axis(str(name), _values(values)) for name, values in data["varied"].items()))
    if not 0 < grid.size <= _MOST_POINTS:
        raise ValueError(f"it has {grid.size:,} points")
    rows = [row for row in data["rows"] if isinstance(row, dict)]
    names = tuple(_inputs(rows[0])) if rows else ()
    # Points share a cell only where they differ in nothing but the concurrency.
    cells: dict[tuple[int, Cell], int] = {}
    stride, length = grid.line(CONCURRENCY)
    cell_of, verdicts = [0] * grid.size, bytearray([NOT_REACHED] * grid.size)
    places = [{_key(value): place for place, value in enumerate(axis.values)} for axis in grid.axes]
    for row in rows:
        at = zip(grid.axes, places, grid.strides, strict=True)
        point = sum(known[_key(_value(row[axis.name]))] * stride for axis, known, stride in at)
        key = (line_of(point, stride, length), _cell(row))
        cell_of[point] = cells.setdefault(key, len(cells))
        verdicts[point] = VERDICTS.index(_verdict(row["verdict"]))
    return Sweep(
        inputs=tuple((name, _value(rows[0][name])) for name in names),
        grid=grid,
        cells=tuple(cell for _, cell in cells) or (Cell("refused"),),
        cell_of=tuple(cell_of),
        verdicts=bytes(verdicts),
        status="interrupted" if NOT_REACHED in verdicts else "finished",
        kvplan_version=str(data.get("kvplan_version", "")),
    )


def _inputs(row: Mapping[str, Any]) -> Iterator[str]:
    """Names of the inputs: they stand before the verdict."""
    for name in row:
        if name == "verdict":
            return
        yield name


def _values(values: list[Any]) -> tuple[Any, ...]:
    return tuple(_value(value) for value in values)


def _value(value: Any) -> Any:
    """As a sweep has it: pairs are tuples there."""
    return tuple(value) if isinstance(value, list) else value


def _key(value: Any) -> str:
    return repr(value)


def _verdict(text: Any) -> Verdict:
    for verdict in get_args(Verdict):
        if text == verdict:
            found: Verdict = verdict
            return found
    raise ValueError(f"{shown(str(text))} is no verdict")


def _cell(row: Mapping[str, Any]) -> Cell:
    fewer = row["reason_code"] == _HOLDS_FEWER
    figures = {name: _figure(name, row[name]) for name in FIGURES}
    return Cell(
        # What was asked for is more than the cell holds; without that it fits.
        verdict="fits" if fewer else _verdict(row["verdict"]),
        reason_code=None if fewer else _text(row["reason_code"]),
        reason=None if fewer else _text(row["reason"]),
        hint=None if fewer else _text(row["hint"]),
        notes=tuple(part for part in (row["notes"] or "").split("; ") if part),
        **figures,
    )


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _figure(name: str, value: Any) -> Any:
    kinds: tuple[type, ...] = (str,) if name == "engine_version" else (int,)
    kinds += (float,) if name in _FLOATS else ()
    if value is not None and (isinstance(value, bool) or not isinstance(value, kinds)):
        raise TypeError(f"{name} is {shown(str(value))}")
    return value
