"""What transformers itself allocated, without tolerance: all of it, and a selection kept here."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from transformers_cases import case_of, config_of, difference, model_of

DATA: dict[str, Any] = json.loads(
    (Path(__file__).parents[2] / "data" / "transformers_cases.json").read_text(encoding="utf-8")
)
Rows = Callable[[str], Iterator[dict[str, Any]]]


def test_there_is_something_of_everything() -> None:
    cases = DATA["cases"]
    assert len(cases) >= 100
    assert len(DATA["models"]) >= 28
    assert {case["options"]["cache"] for case in cases} >= {
        "DynamicCache", "StaticCache", "QuantizedCache", "EncoderDecoderCache", "MiniMaxCache",
    }  # fmt: skip
    assert {case["version"] for case in cases} == {"5.24.0", "4.57.6"}
    assert sum("refused" in case for case in cases) >= 5
    assert sum(case.get("storage") not in (None, case.get("tensor")) for case in cases) >= 7


@pytest.mark.parametrize("case", DATA["cases"], ids=lambda case: case["model"])
def test_kvplan_says_what_was_allocated(case: dict[str, Any]) -> None:
    assert difference(case, model_of(case["model"], DATA["models"][case["model"]])) is None


def test_the_full_collection(oracle: Rows) -> None:
    wrong, seen = [], 0
    models: dict[str, Any] = {}
    for row in oracle("transformers_cases.jsonl.gz"):
        seen += 1
        config = config_of(row)
        key = json.dumps(config, sort_keys=True)
        model = models.setdefault(key, model_of(row["model"], config))
        case = case_of(row)
        found = difference(case, model)
        if found:
            wrong.append(f"{case}: {found}")
    assert seen == 694
    assert wrong == []
