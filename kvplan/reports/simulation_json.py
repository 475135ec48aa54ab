"""A simulation as JSON."""

from __future__ import annotations

import json

from kvplan.simulation import Simulation


def simulation_json(simulation: Simulation) -> str:
    """`kvplan.simulation/1`, indented, in ASCII."""
    fields = simulation.model_dump(mode="json", by_alias=True)
    return json.dumps(fields, indent=2, allow_nan=False) + "\n"
