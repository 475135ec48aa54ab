"""The planning of vLLM 0.33.0 and 0.32.0 itself, case by case, without tolerance.

From `config.json` and the bytes for the cache to blocks, tokens, concurrency, bytes per block
and groups; refusals for lack of memory to the estimated length.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from vllm_cases import case_of, difference, gpu_of, is_modelled, is_planned, model_of

from kvplan.errors import NotModelledError

Rows = Callable[[str], Iterator[dict[str, Any]]]

# Families whose every case has to be compared.
EXACT = {
    "llama-3.1-8b", "llama-3.1-70b", "mistral-7b-v0.1", "mixtral-8x7b", "qwen2.5-7b",
    "qwen3-30b-a3b", "phi-4", "phi-3-mini-4k", "falcon-7b", "gpt2-xl", "opt-6.7b",
    "gpt-neox-default", "olmo-2-7b", "granite-default", "gemma-2-9b", "gemma-3-27b",
    "gpt-oss-20b", "command-a-111b", "deepseek-v2-lite", "deepseek-v3", "deepseek-v3.2",
    "ernie4.5-default", "olmoe-default", "seed-oss-default", "minimax-m2-default",
    "glm4-moe-lite-default", "llama-4-scout", "gemma-3n-e4b",
}  # fmt: skip


def test_every_case_of_a_modelled_family_is_equal(oracle: Rows, shared: Path) -> None:
    @cache
    def configs(folder: str) -> Any:
        return json.loads((shared / "oracle" / folder / "config.json").read_text())

    run: Counter[str] = Counter()
    wrong: list[str] = []
    for row in oracle("vllm_cases.jsonl.gz"):
        if not is_modelled(row):
            continue
        try:
            model = model_of(row["model"], configs(row["input"]["model"]))
        except NotModelledError:
            continue
        gpu = gpu_of(row["gpu"]["name"], tuple(row["gpu"]["cc"]), row["gpu"]["total_memory"])
        case = case_of(row)
        if row["model"] not in EXACT and not is_planned(case, model, gpu):
            continue
        run[row["model"]] += 1
        found = difference(case, model, gpu)
        if found:
            wrong.append(f"{row['id']}: {found}")
    assert wrong == [], f"{len(wrong)} of {run.total()}"
    assert set(run) >= EXACT
    assert run.total() >= 1410
