"""The planning of vLLM 0.33.0 and 0.32.0 itself, case by case, without tolerance.

From `config.json` and the bytes for the cache to blocks, tokens, concurrency, bytes per block
and groups; refusals for lack of memory to the estimated length.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from kvplan.architectures import read_model
from kvplan.engines.base import Setup
from kvplan.engines.vllm.engine import Vllm
from kvplan.errors import NotModelledError
from kvplan.hardware import Fact, GpuSpec
from kvplan.models.facts import ModelFacts
from kvplan.models.spec import ModelSpec
from kvplan.plan import Parallelism
from kvplan.planning.size import Load, size

Rows = Callable[[str], Iterator[dict[str, Any]]]
GIB = 2**30
AUTO = -1

# Families whose every case has to be equal.
EXACT = {
    "llama-3.1-8b", "llama-3.1-70b", "mistral-7b-v0.1", "mixtral-8x7b", "qwen2.5-7b",
    "qwen3-30b-a3b", "phi-4", "phi-3-mini-4k", "falcon-7b", "gpt2-xl", "opt-6.7b",
    "gpt-neox-default", "olmo-2-7b", "granite-default",
}  # fmt: skip
# Read, but with caches or layouts that the engine model does not page yet.
NOT_YET: set[str] = set()


@cache
def _model(folder: Path) -> ModelSpec:
    config = json.loads((folder / "config.json").read_text())
    return read_model(ModelFacts(id=folder.name, source="a reference case", config=config))


@cache
def _gpu(name: str, sm: tuple[int, int], total: int) -> GpuSpec:
    return GpuSpec(
        id=name,
        name=name,
        vendor="nvidia",
        architecture="a reference case",
        compute_capability=f"{sm[0]}.{sm[1]}",
        torch_total_gib=Fact(value=total / GIB, source="a reference case"),
    )


def _setup(case: dict[str, Any], oracle_dir: Path) -> Setup:
    asked = case["input"]
    budget = asked["available_bytes"]
    options = {k: v for k, v in asked.get("engine", {}).items() if v is not None}
    if asked.get("block_size"):
        options["block_size"] = asked["block_size"]
    gpu = case["gpu"]
    return Setup(
        model=_model(oracle_dir / asked["model"]),
        gpu=_gpu(gpu["name"], tuple(gpu["cc"]), gpu["total_memory"]),
        version=case["vllm_version"],
        parallelism=Parallelism(
            tp=asked.get("tp", 1), pp=asked.get("pp", 1), dcp=asked.get("dcp", 1)
        ),
        kv_dtype=asked.get("kv_cache_dtype") or "auto",
        kv_budget=tuple(budget) if isinstance(budget, list) else (budget,),
        options=options,
        context=None if asked.get("max_model_len") == AUTO else asked.get("max_model_len"),
    )


def _load(case: dict[str, Any]) -> Load:
    asked = case["input"].get("max_model_len")
    return Load(context="auto" if asked == AUTO else asked)


def _compared(case: dict[str, Any]) -> bool:
    """Left out: specs made by hand, and features that this engine model refuses by name."""
    asked = case["input"]
    later = {"speculative_config", "kv_cache_dtype_skip_layers", "mamba_cache_dtype"}
    later |= {"mamba_ssm_cache_dtype", "use_replayssm"}
    return (
        "cache_config_overrides" not in asked
        and not later & set(asked.get("engine", {}))
        and "turboquant" not in (asked.get("kv_cache_dtype") or "")
        and "ds_mla" not in (asked.get("kv_cache_dtype") or "")
    )


def _expected(case: dict[str, Any]) -> dict[str, Any]:
    out = case["out"]
    return {
        "blocks": out["num_blocks"],
        "tokens": out["kv_cache_size_tokens"],
        "concurrency": out["max_concurrency"],
        "bytes_per_block": out["bytes_per_block_per_worker"],
        "context": out["max_model_len_after"],
        "held": sorted(group["max_blocks_per_request"] for group in out["groups"]),
        "layers": sorted(sum(group["num_layers_per_worker"]) for group in out["groups"]),
    }


def _got(setup: Setup, load: Load) -> dict[str, Any]:
    plan = size(Vllm(), setup, load)
    assert plan.capacity is not None, plan.reasons
    prepared = Vllm().prepare(setup)
    return {
        "blocks": plan.capacity.blocks,
        "tokens": plan.capacity.tokens,
        "concurrency": plan.capacity.max_concurrency,
        "bytes_per_block": list(prepared.pool.stage_block_bytes),
        "context": plan.workload.context,
        "held": sorted(group.blocks_per_request for group in plan.capacity.groups),
        "layers": sorted(group.layers for group in plan.capacity.groups),
    }


def _check(case: dict[str, Any], shared: Path) -> str | None:
    """What differs, or None."""
    setup, load = _setup(case, shared / "oracle"), _load(case)
    if case["status"] == "ok":
        got, expected = _got(setup, load), _expected(case)
        return None if got == expected else f"{got} is not {expected}"
    plan = size(Vllm(), setup, load)
    if case["status"] == "vllm_config_error":
        return None if plan.verdict == "refused" else f"{plan.verdict}, vLLM refused"
    if plan.verdict != "does_not_fit" or plan.capacity is None:
        return f"{plan.verdict}, vLLM would not start"
    stated = re.search(r"estimated maximum model length is (\d+)", case["error"])
    if stated and plan.capacity.max_context != int(stated[1]):
        return f"{plan.capacity.max_context} is not the estimate {stated[1]}"
    return None


def test_every_case_of_a_modelled_family_is_equal(oracle: Rows, shared: Path) -> None:
    run: Counter[str] = Counter()
    left_out: Counter[str] = Counter()
    wrong: list[str] = []
    for case in oracle("vllm_cases.jsonl.gz"):
        if not _compared(case):
            left_out["feature"] += 1
            continue
        try:
            _model(shared / "oracle" / case["input"]["model"])
        except NotModelledError:
            left_out[case["model"]] += 1
            continue
        if case["model"] in NOT_YET:
            left_out[case["model"]] += 1
            continue
        difference = _check(case, shared)
        run[case["model"]] += 1
        if difference:
            wrong.append(f"{case['id']}: {difference}")
    print(run, left_out)
    assert wrong == [], f"{len(wrong)} of {run.total()}"
    assert set(run) >= EXACT
