"""A selection of vLLM's own answers that lives here (tests/data/README.md), without tolerance."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from vllm_cases import difference, draft_name, gpu_of, model_of

DATA: dict[str, Any] = json.loads(
    (Path(__file__).parents[2] / "data" / "vllm_cases.json").read_text(encoding="utf-8")
)


def test_there_is_something_of_everything() -> None:
    cases = DATA["cases"]
    assert len({case["id"] for case in cases}) == len(cases) >= 150
    assert {case["outcome"] for case in cases} == {"ok", "too_little", "refused"}
    drafts = {name for case in cases if (name := draft_name(case))}
    assert {case["model"] for case in cases} | drafts == set(DATA["models"])
    assert len(drafts) >= 3
    assert len(DATA["models"]) >= 40
    assert {case["tp"] for case in cases} >= {1, 2, 4, 8}
    assert {case["pp"] for case in cases} >= {1, 2}
    assert {case["dcp"] for case in cases} >= {1, 2, 8}
    assert sum("longest" in case["expected"] for case in cases) >= 10
    assert sum(len(case["expected"].get("held", ())) > 1 for case in cases) >= 30


@pytest.mark.parametrize("case", DATA["cases"], ids=lambda case: case["id"])
def test_kvplan_says_what_vllm_says(case: dict[str, Any]) -> None:
    compute_capability, total_bytes = DATA["gpus"][case["gpu"]]
    gpu = gpu_of(case["gpu"], tuple(compute_capability), total_bytes)
    model = model_of(case["model"], DATA["models"][case["model"]])
    assert difference(case, model, gpu, DATA["models"].__getitem__) is None
