"""A plan → the line that starts SGLang's server as planned: what differs from its defaults.

Source: SGLang 0.5.23, sglang/launch_server.py, sglang/srt/server_args.py and
sglang/srt/arg_groups/fields; names that changed are dated by the same files of older wheels.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kvplan.engines import launch
from kvplan.engines.base import parse_version
from kvplan.engines.launch import Asked, Start
from kvplan.engines.sglang.options import read_options
from kvplan.errors import UsageError
from kvplan.plan import Plan

# What SGLang quantizes while it loads a checkpoint of plain weights, by kvplan's name for it.
# Source: sglang/srt/arg_groups/choices.py QUANTIZATION_CHOICES.
_WHILE_LOADING = {"auto": None, "fp8": "fp8"}
_LEAVE = "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN"
# Since when graphs have settings by phase, and groups of attention an option of their own.
_GRAPHS_BY_PHASE = (0, 5, 15)
_GROUPS_APART = (0, 5, 22)
_NO_GRAPHS = (
    *("--cuda-graph-backend-decode", "disabled"),
    *("--cuda-graph-backend-prefill", "disabled"),
)
_SPREAD = ("enable_dp_attention", "dp_size")


def emit(plan: Plan, asked: Asked) -> str:
    """The command line, quoted for a POSIX shell.

    Raises:
        UsageError: SGLang has no flags for what was planned.
    """
    return start(plan, asked).line()


def start(plan: Plan, asked: Asked) -> Start:
    """The command and its variables; see `emit`."""
    given = read_options(asked.options)
    model, revision = launch.named(asked, "SGLang")
    words = ["python", "-m", "sglang.launch_server", "--model-path", model]
    words += ["--revision", revision] if revision else []
    words += _parallel(plan, given)
    if plan.workload.context is not None:
        words += ["--context-length", str(plan.workload.context)]
    words += _formats(plan, asked)
    words += _budget(plan, asked, given)
    for name, value in given.items():
        if name not in _SPREAD:
            words += _flag(name, value, plan.engine.version)
    return Start(tuple(words), {_LEAVE: "1"} if launch.is_beyond_model(plan) else {})


def _parallel(plan: Plan, given: Mapping[str, Any]) -> list[str]:
    spread, groups = plan.parallelism, given.get("dp_size", 1)
    apart = parse_version(plan.engine.version) >= _GROUPS_APART
    if groups > 1 and spread.dp > 1 and not apart:
        raise UsageError(
            f"SGLang {plan.engine.version} has one --dp-size, for replicas or for groups of "
            "attention.",
            hint="Leave out --dp and start the line once a replica.",
            location="--emit",
        )
    sizes = {"--tp-size": spread.tp, "--pp-size": spread.pp}
    sizes["--dp-size"] = spread.dp if apart or groups == 1 else groups
    if apart:
        sizes["--attn-dp-size"] = groups
    words = [word for flag, size in sizes.items() if size > 1 for word in (flag, str(size))]
    return [*words, "--enable-dp-attention"] if groups > 1 and not apart else words


def _formats(plan: Plan, asked: Asked) -> list[str]:
    weights = asked.weights.lower()
    if weights not in _WHILE_LOADING:
        raise UsageError(
            f"SGLang does not make {asked.weights} weights while it loads a model.",
            hint="Plan for a checkpoint that holds them: kvplan size ORG/MODEL-AWQ ...",
            location="--emit",
        )
    formats = {
        "--quantization": _WHILE_LOADING[weights],
        "--kv-cache-dtype": launch.unless_auto(asked.kv_dtype)
        and plan.engine.options.get("kv_cache_dtype"),
        "--dtype": launch.unless_auto(asked.dtype),
    }
    return [word for flag, name in formats.items() if name for word in (flag, str(name))]


def _budget(plan: Plan, asked: Asked, given: Mapping[str, Any]) -> list[str]:
    """Bytes have no flag; the tokens that they make do."""
    size = launch.one_budget(asked.kv_budget, "SGLang")
    if size is None or plan.capacity is None:
        return []
    if any(group.kind == "recurrent" for group in plan.capacity.groups):
        raise UsageError(
            "SGLang has no flag for the bytes of its pools, and tokens alone don't say how many "
            "recurrent states they leave room for.",
            hint="Leave out --kv-budget, or give -o max_mamba_cache_size and -o max_total_tokens.",
            location="--emit",
        )
    tokens = min(plan.capacity.tokens, given.get("max_total_tokens", plan.capacity.tokens))
    return [] if "max_total_tokens" in given else ["--max-total-tokens", str(tokens)]


def _flag(name: str, value: Any, version: str) -> list[str]:
    by_phase = parse_version(version) >= _GRAPHS_BY_PHASE
    if name == "disable_cuda_graph" and value and by_phase:
        return list(_NO_GRAPHS)
    if name == "cuda_graph_max_bs" and by_phase:
        return ["--cuda-graph-max-bs-decode", str(value)]
    if name == "mamba_radix_cache_strategy" and parse_version(version) < (0, 5, 18):
        name = "mamba_scheduler_strategy"  # the name until 0.5.15
    flag = f"--{name.replace('_', '-')}"
    if isinstance(value, bool):
        return [flag] if value else []
    return [flag, str(value)]
