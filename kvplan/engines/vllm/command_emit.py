"""A plan → the `vllm serve` line that realises it: what differs from the release's defaults."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from kvplan.engines import launch
from kvplan.engines.launch import Asked, Start
from kvplan.engines.vllm import history, values
from kvplan.engines.vllm.options import read_options, unfolded
from kvplan.errors import UsageError
from kvplan.plan import Plan

# What vLLM quantizes while it loads a checkpoint of plain weights, by kvplan's name for it.
# Source: vLLM 0.33.0, docs/features/quantization.
_WHILE_LOADING = {"auto": None, "fp8": "fp8"}
_IN_COMPILATION = ("cudagraph_mode",)
_NOT_FLAGS = ("usage_context", "use_v1")


def emit(plan: Plan, asked: Asked) -> str:
    """The command line, quoted for a POSIX shell.

    Raises:
        UsageError: vLLM has no flags for what was planned.
    """
    return start(plan, asked).line()


def start(plan: Plan, asked: Asked) -> Start:
    """The command and its variables; see `emit`."""
    model, _ = launch.named(asked, "vLLM")
    words = [word for flag in flags(plan, asked) for word in flag]
    return Start(("vllm", "serve", model, *words), environment(plan, asked.options))


def flags(plan: Plan, asked: Asked) -> list[list[str]]:
    """Every flag with its values, the model's name left out; see `emit`."""
    _, revision = launch.named(asked, "vLLM")
    found = [["--revision", revision]] if revision else []
    found += _parallel(plan)
    if plan.workload.context is not None:
        found.append(["--max-model-len", str(plan.workload.context)])
    return [*found, *_formats(asked), *_budget(asked.kv_budget), *_options(plan, asked)]


def environment(plan: Plan, options: Mapping[str, Any]) -> dict[str, str]:
    """What is no flag: the engine until 0.11, and leave to go beyond the model's context."""
    use_v1 = read_options(options).get("use_v1")
    found = {} if use_v1 is None else {"VLLM_USE_V1": str(int(use_v1))}
    if launch.is_beyond_model(plan):
        found["VLLM_ALLOW_LONG_MAX_MODEL_LEN"] = "1"
    return found


def _parallel(plan: Plan) -> list[list[str]]:
    parallel = plan.parallelism
    sizes = {
        "--tensor-parallel-size": parallel.tp,
        "--pipeline-parallel-size": parallel.pp,
        "--data-parallel-size": parallel.dp,
        "--decode-context-parallel-size": parallel.dcp,
    }
    return [[flag, str(size)] for flag, size in sizes.items() if size > 1]


def _formats(asked: Asked) -> list[list[str]]:
    weights = asked.weights.lower()
    if weights not in _WHILE_LOADING:
        raise UsageError(
            f"vLLM does not make {asked.weights} weights while it loads a model.",
            hint="Plan for a checkpoint that holds them: kvplan size ORG/MODEL-AWQ ...",
            location="--emit",
        )
    formats = {
        "--quantization": _WHILE_LOADING[weights],
        "--kv-cache-dtype": launch.unless_auto(asked.kv_dtype),
        "--dtype": launch.unless_auto(asked.dtype),
    }
    return [[flag, name] for flag, name in formats.items() if name]


def _budget(kv_budget: tuple[int, ...] | None) -> list[list[str]]:
    size = launch.one_budget(kv_budget, "vLLM")
    return [] if size is None else [["--kv-cache-memory-bytes", str(size)]]


def _options(plan: Plan, asked: Asked) -> list[list[str]]:
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
    if _is_cut_short(plan):
        given.setdefault("max_num_batched_tokens", plan.engine.options["max_num_batched_tokens"])
    usual = _usual(plan.engine.version)
    return [
        _flag(name, value)
        for name, value in given.items()
        if name not in _NOT_FLAGS and value is not None and value != usual.get(name)
    ]


def _is_cut_short(plan: Plan) -> bool:
    """Whether a batch has more tokens than its requests can have.

    The length that fits is less than the one that the batch was made for; given that length, a
    release might fill in a smaller batch than was planned.
    """
    batch = plan.engine.options.get("max_num_batched_tokens")
    requests = plan.engine.options.get("max_num_seqs")
    length = plan.workload.context
    if not isinstance(batch, int) or not isinstance(requests, int) or length is None:
        return False
    return length * requests < batch


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
