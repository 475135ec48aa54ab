"""`SimulatedSweep`: what a workload does at every point of a grid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from kvplan._version import __version__
from kvplan.plan import Reason
from kvplan.simulation import Simulation, Spread
from kvplan.sweep_frames import Columns, Rows, arrow_table, pandas_frame, polars_frame
from kvplan.sweep_grid import Grid

SCHEMA = "kvplan.sweep_simulation/1"
Result = Simulation | Reason | None
"""What was found, why the point is refused, or None where it was not reached."""
_QUANTILES = ("mean", "p50", "p95", "p99", "max")


@dataclass(frozen=True)
class SimulatedSweep:
    """A finished or interrupted sweep of simulations.

    Attributes:
        inputs: Names and values of the inputs, those that are varied as in the first point.
        grid: What was varied.
        results: One for each point.
    """

    inputs: tuple[tuple[str, Any], ...]
    grid: Grid
    results: tuple[Result, ...]
    status: Literal["finished", "interrupted"] = "finished"
    schema: str = SCHEMA
    kvplan_version: str = __version__

    @cached_property
    def points(self) -> Sequence[int]:
        """The points that were reached, in the order of the grid."""
        return tuple(place for place, found in enumerate(self.results) if found is not None)

    @property
    def refused(self) -> int:
        """How many points are refused."""
        return sum(isinstance(found, Reason) for found in self.results)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The columns: inputs, what became of the point, figures, the reason."""
        given = tuple(name for name, _ in self.inputs)
        return (*given, "status", *FIGURES, "reason_code", "reason", "hint")

    def given(self, point: int) -> dict[str, Any]:
        """The inputs of a point."""
        return dict(self.inputs) | self.grid.at(point)

    def row(self, point: int) -> dict[str, Any]:
        """One point that was reached, by the names of the columns."""
        found = self.results[point]
        if isinstance(found, Simulation):
            said: dict[str, Any] = dict.fromkeys(("reason_code", "reason", "hint"))
            return {**self.given(point), "status": "simulated", **figures(found), **said}
        reason = found or Reason(code="", message="")
        said = {"reason_code": reason.code, "reason": reason.message, "hint": reason.hint}
        return {**self.given(point), "status": "refused", **dict.fromkeys(FIGURES), **said}

    def rows(self) -> Sequence[Mapping[str, Any]]:
        """One mapping a point, made when it is asked for."""
        return Rows(len(self.points), lambda place: self.row(self.points[place]))

    def packed(self) -> Columns:
        """The columns."""
        rows = self.rows()
        unlike = {name: [row[name] for row in rows] for name in self.names}
        return Columns(unlike, range(len(rows)), {})

    def columns(self) -> dict[str, list[Any]]:
        """The same by column: a list for each name."""
        return {name: list(values) for name, values in self.packed().unlike.items()}

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


def figures(found: Simulation) -> dict[str, int | float | None]:
    """A simulation's figures by the names of the columns: seconds, tokens, shares from 0 to 1."""
    waiting, lost, prefixes = found.waiting, found.preemptions, found.prefixes
    rate, made = found.throughput, found.requests
    return {
        "pool_blocks": found.pool.blocks,
        "arrived": made.arrived,
        "finished": made.finished,
        "refused_requests": made.refused,
        "simulated_s": found.simulated_s,
        **_spread("occupancy", found.used_blocks, found.pool.blocks),
        **_spread("running", found.running),
        **_spread("waiting_s", waiting.seconds),
        "waited_for_blocks": waiting.for_blocks,
        "waited_for_sequences": waiting.for_sequences,
        "preemptions": lost.count,
        "preempted_requests": lost.requests,
        "recomputed_tokens": lost.recomputed_tokens,
        "prompt_tokens": prefixes.prompt_tokens,
        "hit_tokens": prefixes.hit_tokens,
        "hit_rate": prefixes.hit_rate,
        **_spread("first_token_s", found.latency.first_token),
        **_spread("between_tokens_s", found.latency.between_tokens),
        "requests_per_s": rate.requests_per_s,
        "output_tokens_per_s": rate.output_tokens_per_s,
        "goodput_per_s": rate.goodput_per_s,
        "good_share": rate.good_share,
    }


def _spread(name: str, spread: Spread | None, whole: int = 1) -> dict[str, float | None]:
    if spread is None:
        return {f"{name}_{each}": None for each in _QUANTILES}
    values = (spread.mean, spread.p50, spread.p95, spread.p99, spread.max)
    return {f"{name}_{each}": value / whole for each, value in zip(_QUANTILES, values, strict=True)}


FIGURES = (
    "pool_blocks", "arrived", "finished", "refused_requests", "simulated_s",
    *(f"occupancy_{each}" for each in _QUANTILES),
    *(f"running_{each}" for each in _QUANTILES),
    *(f"waiting_s_{each}" for each in _QUANTILES),
    "waited_for_blocks", "waited_for_sequences", "preemptions", "preempted_requests",
    "recomputed_tokens", "prompt_tokens", "hit_tokens", "hit_rate",
    *(f"first_token_s_{each}" for each in _QUANTILES),
    *(f"between_tokens_s_{each}" for each in _QUANTILES),
    "requests_per_s", "output_tokens_per_s", "goodput_per_s", "good_share",
)  # fmt: skip
"""Names of `figures`, in the order of the columns."""
