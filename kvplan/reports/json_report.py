"""The plan as JSON, exactly as `Plan` dumps itself."""

from __future__ import annotations

import json

from kvplan.plan import Plan


def json_report(plan: Plan) -> str:
    """`kvplan.plan/1`, indented, in ASCII so that no terminal or encoding spoils it."""
    return json.dumps(plan.model_dump(mode="json", by_alias=True), indent=2, allow_nan=False) + "\n"
