"""A simulation's timeline as CSV, for a chart of one's own."""

from __future__ import annotations

import csv
from io import StringIO

from kvplan.simulation import Moment, Simulation


def simulation_csv(simulation: Simulation) -> str:
    """One row an interval, columns as in `kvplan.simulation.Moment`."""
    out = StringIO()
    names = list(Moment.model_fields)
    writer = csv.DictWriter(out, names, lineterminator="\n")
    writer.writeheader()
    for moment in simulation.timeline:
        writer.writerow({name: _short(value) for name, value in moment.model_dump().items()})
    return out.getvalue()


def _short(value: float) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
