"""A validation as JSON (`kvplan.validation/1`): a check that was not made has no key."""

from __future__ import annotations

import json
from typing import Any

from kvplan.validation import CHECK_NAMES, CheckedRecord, Validation


def validation_json(validation: Validation) -> str:
    """All records and the summary, indented, in ASCII."""
    data = validation.model_dump(mode="json", by_alias=True, exclude={"records"})
    summary = data.pop("summary")
    data["records"] = [_record(record) for record in validation.records]
    data["summary"] = summary
    return json.dumps(data, indent=2, allow_nan=False) + "\n"


def _record(record: CheckedRecord) -> dict[str, Any]:
    data = record.model_dump(mode="json")
    return {key: value for key, value in data.items() if key not in CHECK_NAMES or value}
