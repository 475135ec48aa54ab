"""A plan → the `vllm serve` line that realises it: what differs from the release's defaults."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kvplan.engines.vllm import history, values
from kvplan.engines.vllm.options import read_options, unfolded
from kvplan.errors import UsageError
from kvplan.plan import Plan

# What vLLM quantizes while it loads a checkpoint of plain weights, by kvplan's name for it.
# Source: vLLM 0.33.0, docs/features/quantization.
_WHILE_LOADING = {"auto": None, "fp8": "fp8"}
_TOO_LONG = "context_above_model_maximum"
_IN_COMPILATION = ("cudagraph_mode",)
_NOT_FLAGS = ("usage_context", "use_v1")


@dataclass(frozen=True, slots=True)
class Asked:
    """What the plan was asked for, where the plan itself only says what came of it.

    Attributes:
        model: The reference, as it was written.
        kv_budget: Bytes of cache a rank, if they were given.
        options: vLLM's own names and values, as they were given.
    """

    model: str
    weights: str = "auto"
    kv_dtype: str = "auto"
    dtype: str = "auto"
    kv_budget: tuple[int, ...] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


def emit(plan: Plan, asked: Asked) -> str:
    """The command line, quoted for a POSIX shell.

    Raises:
        UsageError: vLLM has no flags for what was planned.
    """
    if asked.model in ("-", "/dev/stdin"):
        raise UsageError(
            "A model on standard input has no name that vLLM could load.",
            hint="Give a Hub id or a folder.",
            location="--emit",
        )
    model, _, revision = asked.model.partition("@")
    words = ["vllm", "serve", model]
    words += ["--revision", revision] if revision else []
    words += _parallel(plan)
    if plan.workload.context is not None:
        words += ["--max-model-len", str(plan.workload.context)]
    words += _formats(asked)
    words += _budget(asked.kv_budget)
    words += _options(plan, asked)
    return shlex.join([*_environment(plan, asked.options), *words])


def _environment(plan: Plan, options: Mapping[str, Any]) -> list[str]:
    """What is no flag: the engine until 0.11, and leave to go beyond the model's context."""
    use_v1 = read_options(options).get("use_v1")
    words = [] if use_v1 is None else [f"VLLM_USE_V1={int(use_v1)}"]
    if any(reason.code == _TOO_LONG for reason in plan.reasons):
        words.append("VLLM_ALLOW_LONG_MAX_MODEL_LEN=1")
    return words


def _parallel(plan: Plan) -> list[str]:
    parallel = plan.parallelism
    sizes = {
        "--tensor-parallel-size": parallel.tp,
        "--pipeline-parallel-size": parallel.pp,
        "--data-parallel-size": parallel.dp,
        "--decode-context-parallel-size": parallel.dcp,
    }
    return [word for flag, size in sizes.items() if size > 1 for word in (flag, str(size))]


def _formats(asked: Asked) -> list[str]:
    weights = asked.weights.lower()
    if weights not in _WHILE_LOADING:
        raise UsageError(
            f"vLLM does not make {asked.weights} weights while it loads a model.",
            hint="Plan for a checkpoint that holds them: kvplan size ORG/MODEL-AWQ ...",
            location="--emit",
        )
    formats = {
        "--quantization": _WHILE_LOADING[weights],
        "--kv-cache-dtype": _unless_auto(asked.kv_dtype),
        "--dtype": _unless_auto(asked.dtype),
    }
    return [word for flag, name in formats.items() if name for word in (flag, name)]


def _unless_auto(name: str) -> str | None:
    return None if name == "auto" else name


def _budget(kv_budget: tuple[int, ...] | None) -> list[str]:
    if kv_budget is None:
        return []
    if len(set(kv_budget)) > 1:
        raise UsageError(
            "vLLM gives every rank the same memory for its cache.",
            hint="Give one --kv-budget for all.",
            location="--emit",
        )
    return ["--kv-cache-memory-bytes", str(kv_budget[0])]


def _options(plan: Plan, asked: Asked) -> list[str]:
    given = read_options(asked.options)
    raw = unfolded(asked.options)
    if asked.kv_budget is not None:
        given.pop("kv_cache_memory_bytes", None)
    if "speculative_config" in given:  # keys that change no page are passed on too
        given["speculative_config"] = values.mapping("", raw["speculative_config"])
    # `vllm serve` has defaults of its own: those of another door are written out.
    if given.get("usage_context", "serve") != "serve":
        for name in ("max_num_seqs", "max_num_batched_tokens"):
            given.setdefault(name, plan.engine.options.get(name))
    usual = _usual(plan.engine.version)
    words: list[str] = []
    for name, value in given.items():
        if name not in _NOT_FLAGS and value is not None and value != usual.get(name):
            words += _flag(name, value)
    return words


def _usual(version: str) -> dict[str, Any]:
    return {
        "gpu_memory_utilization": history.rules_for(version).utilization,
        "enforce_eager": False,
        "disable_hybrid_kv_cache_manager": False,
        "enable_expert_parallel": False,
    }


def _flag(name: str, value: Any) -> list[str]:
    flag = f"--{name.replace('_', '-')}"
    if name in _IN_COMPILATION:
        return ["--compilation-config", json.dumps({name: value})]
    if isinstance(value, bool):
        return [flag if value else f"--no-{flag[2:]}"]
    if isinstance(value, list | tuple):
        return [flag, *(str(each) for each in value)]
    return [flag, json.dumps(value) if isinstance(value, Mapping) else str(value)]
