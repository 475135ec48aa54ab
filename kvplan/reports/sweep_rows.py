"""A sweep in words: its headline, what is fixed, and a row for each line of points."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from kvplan.plan import Verdict
from kvplan.reports.sweep_cells import word
from kvplan.sweep_grid import Grid, first_on_line
from kvplan.sweep_result import CONCURRENCY, NOT_REACHED, VERDICTS, Cell, Sweep, why
from kvplan.units import format_bytes, format_count

_VERDICT_WORDS: dict[Verdict, str] = {
    "fits": "fits",
    "does_not_fit": "does not fit",
    "refused": "refused",
}
_BINARY = 1024
FIGURE_TITLES = ("held", "concurrency", "tokens", "longest", "KV cache")


@dataclass(frozen=True, slots=True)
class Line:
    """Points that differ in nothing but the concurrency.

    Attributes:
        values: Those of the other inputs that are varied.
        cell: What was worked out; where engines start for a number of requests, that of the
            greatest number that fits, or else of the first.
        verdict: The best that any of the points has.
        fits: The greatest number of requests asked for that fits.
    """

    values: tuple[Any, ...]
    cell: Cell
    verdict: Verdict
    fits: int | None


def lines(sweep: Sweep) -> Iterator[Line]:
    """The lines that were reached, in the order of the grid."""
    grid = sweep.grid.without(CONCURRENCY)
    stride, length = sweep.grid.line(CONCURRENCY)
    axis = sweep.grid.axis(CONCURRENCY)
    for number in range(grid.size):
        first = first_on_line(number, stride, length)
        if sweep.verdicts[first] == NOT_REACHED:
            continue
        points = range(first, first + stride * length, stride)
        best, fits = first, None
        if axis is not None:
            holding = [
                (count, point)
                for count, point in zip(axis.values, points, strict=True)
                if sweep.verdict(point) == "fits"
            ]
            fits, best = max(holding, default=(None, first))
        values = tuple(grid.at(number).values())
        yield Line(values, sweep.cell(best), sweep.verdict(best), fits)


def titles(sweep: Sweep) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Titles of the columns of inputs, and of figures."""
    varied = tuple(axis.name for axis in sweep.grid.without(CONCURRENCY).axes)
    asked = ("fits up to",) if sweep.grid.axis(CONCURRENCY) else ()
    return varied, (*asked, *FIGURE_TITLES, "verdict")


def cells(sweep: Sweep, line: Line) -> tuple[str, ...]:
    """A line in the words of a table."""
    names = (axis.name for axis in sweep.grid.without(CONCURRENCY).axes)
    inputs = (value(name, each) for name, each in zip(names, line.values, strict=True))
    cell = line.cell
    asked: tuple[str, ...] = ()
    if sweep.grid.axis(CONCURRENCY):
        asked = (format_count(line.fits) if line.fits is not None else "-",)
    figures = ("",) * len(FIGURE_TITLES)
    if cell.requests is not None:
        figures = (
            format_count(cell.requests),
            f"{cell.max_concurrency or 0:,.2f}",
            format_count(cell.tokens or 0),
            format_count(cell.max_context or 0),
            format_bytes(cell.kv_bytes or 0),
        )
    return (*inputs, *asked, *figures, _VERDICT_WORDS[line.verdict])


def value(name: str, given: Any) -> str:
    """An input's value for people.

    >>> value("context", 131072), value("context", 100000), value("kv_budget", 2**30)
    ('128k', '100000', '1.00 GiB')
    """
    if isinstance(given, int) and not isinstance(given, bool):
        if name == "context" and given >= _BINARY and given % _BINARY == 0:
            return f"{given // _BINARY}k"
        if name == "kv_budget":
            return format_bytes(given)
    return "-" if given is None else word(given)


def headline(sweep: Sweep) -> str:
    """How many points there are, and how many fit."""
    done, whole = len(sweep.points), sweep.grid.size
    points = f"{format_count(done)} point{'' if done == 1 else 's'}"
    if sweep.status == "interrupted":
        points = f"Interrupted after {points} of {format_count(whole)}"
    fits, short, refused = (sweep.count(verdict) for verdict in VERDICTS)
    parts = [
        f"{format_count(fits)} fit{'s' if fits == 1 else ''}",
        f"{format_count(short)} {'does' if short == 1 else 'do'} not",
    ]
    if refused:
        parts.append(f"{format_count(refused)} {'is' if refused == 1 else 'are'} refused")
    return f"{points}: {', '.join(parts)}."


def fixed(sweep: Sweep) -> str:
    """What is the same at all points."""
    return fixed_words(sweep.inputs, sweep.grid)


def fixed_words(inputs: Iterable[tuple[str, Any]], grid: Grid) -> str:
    """Inputs that are not varied, in words."""
    varied = {axis.name for axis in grid.axes}
    given = {name: each for name, each in inputs if name not in varied}
    parts = [f"{given.pop('model')}" if "model" in given else "several models"]
    parts.append(f"on {given.pop('gpu')}" if "gpu" in given else "on several GPUs")
    parts.append(f"with {given.pop('engine')}" if "engine" in given else "with several engines")
    usual = {"tp": 1, "pp": 1, "dp": 1, "dcp": 1}
    for name, each in given.items():
        if each not in (None, "auto", usual.get(name)):
            parts.append(f"{name} {value(name, each)}")
    return ", ".join((" ".join(parts[:3]), *parts[3:]))


def label(names: Sequence[str], values: Sequence[Any]) -> str:
    """What a series of points is called in a legend."""
    return ", ".join(
        value(name, each) if name in ("gpu", "model", "engine") else f"{name} {value(name, each)}"
        for name, each in zip(names, values, strict=True)
    )


def reasons(sweep: Sweep) -> Iterator[str]:
    """Why points are refused or hold nothing, with how many rows say so.

    Sentences of one kind about memory differ in their numbers; the first stands for all.
    """
    counted = Counter[tuple[str | None, str]]()
    first: dict[tuple[str | None, str], str] = {}
    for line in lines(sweep):
        code, reason, _ = why(line.cell, line.verdict)
        if line.verdict == "fits" or reason is None:
            continue
        key = (code, reason if line.verdict == "refused" else "")
        counted[key] += 1
        first.setdefault(key, reason)
    for key, count in counted.most_common():
        rows = f"{format_count(count)} rows" if key[1] else f"and {format_count(count - 1)} alike"
        yield first[key] if count == 1 else f"{first[key]} ({rows})"
