"""A check as JSON: `kvplan.check/1`, with every plan in full."""

from __future__ import annotations

import json

from kvplan.check_result import CheckResult


def check_json(result: CheckResult) -> str:
    """The result, indented, in ASCII; ``--baseline`` and ``kvplan diff`` read it back."""
    data = result.model_dump(mode="json", by_alias=True)
    data["exit_code"] = result.exit_code
    return json.dumps(data, indent=2, allow_nan=False) + "\n"
