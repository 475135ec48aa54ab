"""`Sweep`: what holds at every point of a grid, kept so that a million points are light."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Literal

from kvplan._version import __version__
from kvplan.plan import Verdict
from kvplan.sweep_frames import Columns, Rows, arrow_table, pandas_frame, polars_frame
from kvplan.sweep_grid import Grid

SCHEMA = "kvplan.sweep/1"
CONCURRENCY = "concurrency"
VERDICTS: tuple[Verdict, ...] = ("fits", "does_not_fit", "refused")
NOT_REACHED = 255
"""In place of a verdict's place in `VERDICTS`, where somebody interrupted the sweep."""


@dataclass(frozen=True, slots=True)
class Cell:
    """What one configuration holds of requests of one length, whatever number is asked for.

    Bytes are those of one GPU, the fullest rank; capacity is that of one replica, but for
    ``requests``. None where the point is refused.

    Attributes:
        verdict: As `kvplan.size` says without a concurrency.
        reason_code, reason, hint: Why it does not fit or is refused.
        notes: Codes of what else a plan says.
        planned_context: Tokens a request that were planned for.
        gpus, replicas: Of the deployment.
    """

    verdict: Verdict
    reason_code: str | None = None
    reason: str | None = None
    hint: str | None = None
    notes: tuple[str, ...] = ()
    engine_version: str | None = None
    planned_context: int | None = None
    gpus: int | None = None
    replicas: int | None = None
    requests: int | None = None
    max_concurrency: float | None = None
    max_context: int | None = None
    tokens: int | None = None
    tokens_low: int | None = None
    tokens_high: int | None = None
    blocks: int | None = None
    bytes_per_token: float | None = None
    bytes_per_request: int | None = None
    budget_bytes: int | None = None
    total_bytes: int | None = None
    weights_bytes: int | None = None
    runtime_bytes: int | None = None
    kv_bytes: int | None = None
    outside_bytes: int | None = None
    free_bytes: int | None = None


SAID = ("verdict", "reason_code", "reason", "hint")
"""Of a cell, what also depends on the requests asked for."""
FIGURES = tuple(field.name for field in fields(Cell) if field.name not in (*SAID, "notes"))
"""Of a cell, what does not, in the order of the columns."""


@dataclass(frozen=True)
class Sweep:
    """A finished or interrupted sweep.

    Attributes:
        inputs: Names and values of the inputs, those that are varied as in the first point.
        grid: What was varied.
        cells: What was worked out.
        cell_of: For each point, its place in ``cells``.
        verdicts: For each point, its place in `VERDICTS`, or `NOT_REACHED`.

    Example:
        >>> from kvplan import sweep
        >>> found = sweep("Qwen/Qwen3-8B", "L4", vary={"context": "4k..16k*2"}, offline=True)
        >>> len(found.rows()), found.count("fits")
        (3, 3)
    """

    inputs: tuple[tuple[str, Any], ...]
    grid: Grid
    cells: tuple[Cell, ...]
    cell_of: tuple[int, ...]
    verdicts: bytes
    status: Literal["finished", "interrupted"] = "finished"
    schema: str = SCHEMA
    kvplan_version: str = __version__

    @cached_property
    def points(self) -> Sequence[int]:
        """The points that were reached, in the order of the grid."""
        if self.status == "finished":
            return range(self.grid.size)
        return tuple(point for point, code in enumerate(self.verdicts) if code != NOT_REACHED)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The columns: inputs, the verdict, figures, reasons."""
        given = tuple(name for name, _ in self.inputs)
        return (*given, "verdict", *FIGURES, "reason_code", "reason", "hint", "notes")

    def count(self, verdict: Verdict) -> int:
        """How many points have that verdict."""
        return self.verdicts.count(VERDICTS.index(verdict))

    def given(self, point: int) -> dict[str, Any]:
        """The inputs of a point."""
        return dict(self.inputs) | self.grid.at(point)

    def verdict(self, point: int) -> Verdict:
        """The verdict on a point that was reached."""
        return VERDICTS[self.verdicts[point]]

    def cell(self, point: int) -> Cell:
        """What was worked out for a point that was reached."""
        return self.cells[self.cell_of[point]]

    def state(self, point: int) -> int:
        """A number that points share whose rows differ in nothing but the concurrency."""
        return self.cell_of[point] * len(VERDICTS) + self.verdicts[point]

    def row(self, point: int) -> dict[str, Any]:
        """One point by the names of the columns."""
        cell, verdict = self.cell(point), self.verdict(point)
        code, reason, hint = why(cell, verdict)
        return {
            **self.given(point),
            "verdict": verdict,
            **{name: getattr(cell, name) for name in FIGURES},
            "reason_code": code,
            "reason": reason,
            "hint": hint,
            "notes": "; ".join(cell.notes) or None,
        }

    def rows(self) -> Sequence[Mapping[str, Any]]:
        """One mapping a point, made when it is asked for.

        >>> import kvplan
        >>> found = kvplan.sweep(
        ...     "Qwen/Qwen3-8B", "L4", vary={"context": "4k..16k*2"}, offline=True
        ... )
        >>> [(row["context"], row["verdict"]) for row in found.rows()]
        [(4096, 'fits'), (8192, 'fits'), (16384, 'fits')]
        """
        return Rows(len(self.points), lambda place: self.row(self.points[place]))

    def unlike(self) -> tuple[dict[int, int], dict[int, dict[str, Any]]]:
        """Rows that differ in more than the concurrency.

        Returns:
            For each state its place, and the rows by place.
        """
        first: dict[int, int] = {}
        for point in self.points:
            first.setdefault(self.state(point), point)
        places = {state: place for place, state in enumerate(first)}
        return places, {place: self.row(point) for place, point in enumerate(first.values())}

    def asked(self) -> list[int] | None:
        """The concurrency of every point where it is varied, else None."""
        axis = self.grid.axis(CONCURRENCY)
        if axis is None:
            return None
        stride, length = self.grid.line(CONCURRENCY)
        return [axis.values[point // stride % length] for point in self.points]

    def packed(self) -> Columns:
        """The columns, each unlike row once."""
        places, rows = self.unlike()
        asked = self.asked()
        return Columns(
            {name: [row[name] for row in rows.values()] for name in self.names},
            [places[self.state(point)] for point in self.points],
            {} if asked is None else {CONCURRENCY: asked},
        )

    def columns(self) -> dict[str, list[Any]]:
        """The same by column: a list for each name."""
        packed = self.packed()
        found = {
            name: [values[place] for place in packed.order]
            for name, values in packed.unlike.items()
        }
        return found | {name: list(values) for name, values in packed.own.items()}

    def to_arrow(self) -> Any:
        """A `pyarrow.Table`, a row a point.

        Raises:
            UsageError: pyarrow is not installed.
        """
        return arrow_table(self.packed())

    def to_pandas(self) -> Any:
        """A `pandas.DataFrame`, a row a point.

        Raises:
            UsageError: pandas is not installed.
        """
        return pandas_frame(self.columns())

    def to_polars(self) -> Any:
        """A `polars.DataFrame`, a row a point.

        Raises:
            UsageError: polars is not installed.
        """
        return polars_frame(self.columns())


def why(cell: Cell, verdict: Verdict) -> tuple[str | None, str | None, str | None]:
    """Why a point has its verdict: a code, a sentence, what to do."""
    if cell.verdict == verdict:
        return cell.reason_code, cell.reason, cell.hint
    held = "1 request" if cell.requests == 1 else f"{cell.requests:,} requests"
    return "holds_fewer", f"It holds {held} of that length.", None
