"""What vLLM itself computed, case by case, and what kvplan makes of the same question.

A case is a flat dictionary: the question (``version``, ``gpu``, ``model``, ``tp``, ``pp``, ``dcp``,
``kv_dtype``, ``available``, ``options``, ``context``: tokens, or ``auto``, or null for the model's
own maximum; a draft is named in the options) and the engine's answer under ``expected``.
``outcome`` says of what kind that is:

- ``ok``: the engine starts; ``expected`` holds every figure, and all have to be equal
- ``too_little``: it refuses for lack of memory; ``longest`` is its estimate, where it states one
- ``refused``: it rejects the configuration
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cache
from typing import Any

from kvplan.architectures import read_model
from kvplan.architectures.drafts.own import mtp_draft
from kvplan.engines.base import Setup
from kvplan.engines.vllm.engine import Vllm
from kvplan.hardware import Fact, GpuSpec
from kvplan.models.facts import ModelFacts
from kvplan.models.spec import ModelSpec
from kvplan.plan import Parallelism
from kvplan.planning.size import Load, size

Configs = Callable[[str], dict[str, Any]]

GIB = 2**30
_AUTO = -1
_OUTCOMES = {"ok": "ok", "vllm_error": "too_little", "vllm_config_error": "refused"}


def has_config(row: dict[str, Any]) -> bool:
    """Whether a reference row starts from a configuration, not from layer specs made by hand."""
    return "cache_config_overrides" not in row["input"]


def case_of(row: dict[str, Any]) -> dict[str, Any]:
    """A reference row as a case."""
    asked = row["input"]
    available = asked["available_bytes"]
    options = {name: value for name, value in asked.get("engine", {}).items() if value is not None}
    if asked.get("block_size"):
        options["block_size"] = asked["block_size"]
    context = asked.get("max_model_len")
    return {
        "id": row["id"],
        "version": row["vllm_version"],
        "gpu": row["gpu"]["name"],
        "model": row["model"],
        "tp": asked.get("tp", 1),
        "pp": asked.get("pp", 1),
        "dcp": asked.get("dcp", 1),
        "kv_dtype": asked.get("kv_cache_dtype") or "auto",
        "available": available if isinstance(available, list) else [available],
        "options": options,
        "context": "auto" if context == _AUTO else context,
        "outcome": _OUTCOMES[row["status"]],
        "expected": _expected(row),
    }


def _expected(row: dict[str, Any]) -> dict[str, Any]:
    if row["status"] != "ok":
        stated = re.search(r"estimated maximum model length is (\d+)", row.get("error", ""))
        return {"longest": int(stated[1])} if stated else {}
    out = row["out"]
    return {
        "blocks": out["num_blocks"],
        "tokens": out["kv_cache_size_tokens"],
        "concurrency": out["max_concurrency"],
        "bytes_per_block": out["bytes_per_block_per_worker"],
        "context": out["max_model_len_after"],
        "held": sorted(group["max_blocks_per_request"] for group in out["groups"]),
        "layers": sorted(sum(group["num_layers_per_worker"]) for group in out["groups"]),
    }


def model_of(name: str, config: dict[str, Any]) -> ModelSpec:
    """What kvplan reads from a case's configuration."""
    return _model(name, json.dumps(config))


@cache
def _model(name: str, config: str) -> ModelSpec:
    source = "a reference case"
    return read_model(ModelFacts(id=name, source=source, config=json.loads(config)))


@cache
def gpu_of(name: str, compute_capability: tuple[int, int], total_bytes: int) -> GpuSpec:
    """The device that the engine believed it was on."""
    source = "a reference case"
    return GpuSpec(
        id=name,
        name=name,
        vendor="nvidia",
        architecture=source,
        compute_capability="{}.{}".format(*compute_capability),
        torch_total_gib=Fact(value=total_bytes / GIB, source=source),
    )


def question(
    case: dict[str, Any], model: ModelSpec, gpu: GpuSpec, configs: Configs
) -> tuple[Setup, Load]:
    """The case as kvplan is asked it; ``configs`` finds the configuration of a draft."""
    context = case["context"]
    setup = Setup(
        model=model,
        gpu=gpu,
        version=case["version"],
        parallelism=Parallelism(tp=case["tp"], pp=case["pp"], dcp=case["dcp"]),
        kv_dtype=case["kv_dtype"],
        kv_budget=tuple(case["available"]),
        options=case["options"],
        context=context if isinstance(context, int) else None,
        draft=_draft(case, model, configs),
    )
    return setup, Load(context=context)


def draft_name(case: dict[str, Any]) -> str | None:
    """The reference of the case's draft, if it has one of its own."""
    wanted = Vllm().draft_of(case["options"])
    return wanted.model if wanted else None


def _draft(case: dict[str, Any], model: ModelSpec, configs: Configs) -> ModelSpec | None:
    if Vllm().draft_of(case["options"]) is None:
        return None
    name = draft_name(case)
    return mtp_draft(model) if name is None else model_of(name, configs(name))


def _overdrawn(case: dict[str, Any], setup: Setup, load: Load) -> bool:
    """Whether the blocks that were forced take more bytes than there are.

    The planning then goes on, and its allocation fails: a plan says so.
    """
    kv = size(Vllm(), setup, load).kv
    forced = "num_gpu_blocks_override" in case["options"]
    return forced and kv is not None and kv.allocated_bytes > kv.budget_bytes


def difference(
    case: dict[str, Any], model: ModelSpec, gpu: GpuSpec, configs: Configs
) -> str | None:
    """What kvplan says otherwise than the engine, or None."""
    setup, load = question(case, model, gpu, configs)
    if case["outcome"] == "ok":
        got = _figures(setup, load)
        verdict = got.pop("verdict")
        if verdict != "fits" and not _overdrawn(case, setup, load):
            return f"{verdict}, vLLM starts"
        return None if got == case["expected"] else f"{got} is not {case['expected']}"
    plan = size(Vllm(), setup, load)
    if case["outcome"] == "refused":
        return None if plan.verdict == "refused" else f"{plan.verdict}, vLLM refused"
    if plan.verdict != "does_not_fit" or plan.capacity is None:
        return f"{plan.verdict}, vLLM would not start"
    longest = case["expected"].get("longest")
    if longest is not None and plan.capacity.max_context != longest:
        return f"{plan.capacity.max_context} is not the estimate {longest}"
    return None


def _figures(setup: Setup, load: Load) -> dict[str, Any]:
    plan = size(Vllm(), setup, load)
    if plan.capacity is None:
        return {"verdict": plan.verdict, "refused": plan.reasons[0].message}
    prepared = Vllm().prepare(setup)
    groups = plan.capacity.groups
    return {
        # More blocks than there is memory for are planned as asked; vLLM would run out of it.
        "verdict": plan.verdict,
        "blocks": plan.capacity.blocks,
        "tokens": plan.capacity.tokens,
        "concurrency": plan.capacity.max_concurrency,
        "bytes_per_block": list(prepared.pool.stage_block_bytes),
        "context": plan.workload.context,
        "held": sorted(group.blocks_per_request for group in groups),
        "layers": sorted(group.layers for group in groups),
    }
