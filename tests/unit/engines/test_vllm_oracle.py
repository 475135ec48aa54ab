"""The planning of vLLM 0.33.0 and 0.32.0 itself, case by case, without tolerance.

From `config.json` and the bytes for the cache to blocks, tokens, concurrency, bytes per block and
groups; refusals for lack of memory to the estimated length. Models whose classes those releases
have dropped start from layer specs made by hand.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from vllm_cases import case_of, difference, gpu_of, has_config, model_of
from vllm_specs import planned_by_hand

Rows = Callable[[str], Iterator[dict[str, Any]]]


def test_every_case_is_equal(oracle: Rows, shared: Path) -> None:
    @cache
    def configs(folder: str) -> Any:
        return json.loads((shared / "oracle" / folder / "config.json").read_text())

    run: Counter[str] = Counter()
    wrong: list[str] = []
    for row in filter(has_config, oracle("vllm_cases.jsonl.gz")):
        model = model_of(row["model"], configs(row["input"]["model"]))
        gpu = gpu_of(row["gpu"]["name"], tuple(row["gpu"]["cc"]), row["gpu"]["total_memory"])
        case = case_of(row)
        run[case["outcome"]] += 1
        found = difference(case, model, gpu, configs)
        if found:
            wrong.append(f"{row['id']}: {found}")
    assert wrong == [], f"{len(wrong)} of {run.total()}"
    assert run == {"ok": 2036, "too_little": 70, "refused": 51}


def test_every_case_of_specs_made_by_hand_is_equal(oracle: Rows) -> None:
    rows = [row for row in oracle("vllm_cases.jsonl.gz") if not has_config(row)]
    wrong = [
        f"{row['id']}: {got} is not {expected}"
        for row in rows
        for got, expected in [planned_by_hand(row)]
        if got != expected
    ]
    assert wrong == []
    assert Counter(row["status"] for row in rows) == {"ok": 125, "vllm_error": 1}
