"""A plan → the lines that start `trtllm-serve` as planned: what differs from its defaults.

What has no flag goes into a file of LlmArgs, which the lines write first. Source: TensorRT-LLM at
commit 00209af, tensorrt_llm/commands/serve.py (serve) and tensorrt_llm/llmapi/llm_args.py
(KvCacheConfig, update_llm_args_with_extra_dict).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from kvplan.engines import launch
from kvplan.engines.base import parse_version
from kvplan.engines.launch import Asked, Start
from kvplan.engines.tensorrt_llm.options import read_options
from kvplan.errors import UsageError
from kvplan.plan import Plan

FILE = "trtllm.yaml"
# Words of types and backends that YAML reads as text without quotes.
_PLAIN = re.compile(
    r"(?!(?:y|n|yes|no|on|off|true|false|null)$)[A-Za-z]\w*", re.ASCII | re.IGNORECASE
)
_OLDEST = (1, 0)
_FLAGS = ("backend", "max_batch_size", "max_num_tokens")
_FRACTION = "free_gpu_memory_fraction"
_CACHE = (
    "tokens_per_block",
    "max_attention_window",
    "max_tokens",
    "max_gpu_total_bytes",
    "host_cache_size",
    "enable_block_reuse",
)


def emit(plan: Plan, asked: Asked) -> str:
    """The command line, quoted for a POSIX shell, after the file that it reads if it needs one.

    Raises:
        UsageError: trtllm-serve has no flags for what was planned.
    """
    return start(plan, asked).line()


def start(plan: Plan, asked: Asked) -> Start:
    """The command and the file that it reads; see `emit`."""
    given = read_options(asked.options)
    _check(plan, asked)
    model, revision = launch.named(asked, "TensorRT-LLM")
    words = ["trtllm-serve", model]
    words += ["--revision", revision] if revision else []
    sizes = {"--tp_size": plan.parallelism.tp, "--pp_size": plan.parallelism.pp}
    sizes["--ep_size"] = given.get("moe_expert_parallel_size", 1)
    words += [word for flag, size in sizes.items() if size > 1 for word in (flag, str(size))]
    length = given.get("max_seq_len", plan.workload.context)
    words += ["--max_seq_len", str(length)] if length is not None else []
    for name in _FLAGS:
        words += [f"--{name}", str(given[name])] if name in given else []
    args = _args(plan, asked, given)
    if _FRACTION in given and "kv_cache_config" not in args:
        words += ["--kv_cache_free_gpu_memory_fraction", f"{given[_FRACTION]:g}"]
    if not args:
        return Start(tuple(words))
    return Start((*words, "--extra_llm_api_options", FILE), files={FILE: _yaml(args)})


def _check(plan: Plan, asked: Asked) -> None:
    if parse_version(plan.engine.version) < _OLDEST:
        raise UsageError(
            f"kvplan writes lines for trtllm-serve since 1.0, not for {plan.engine.version}.",
            hint="Build that engine with trtllm-build and the options of the plan.",
            location="--emit",
        )
    if asked.weights.lower() != "auto":
        raise UsageError(
            f"trtllm-serve does not make {asked.weights} weights while it loads a model.",
            hint="Plan for a checkpoint that holds them: kvplan size ORG/MODEL-FP8 ...",
            location="--emit",
        )
    if plan.parallelism.dp > 1:
        raise UsageError(
            "trtllm-serve starts one replica.",
            hint="Leave out --dp and start the line once a replica.",
            location="--emit",
        )


def _args(plan: Plan, asked: Asked, given: Mapping[str, Any]) -> dict[str, Any]:
    """LlmArgs that have no flag. A kv_cache_config takes the place of the flag's, whole."""
    cache: dict[str, Any] = {}
    if launch.unless_auto(asked.kv_dtype):
        cache["dtype"] = plan.engine.options["kv_cache_dtype"]
    budget = launch.one_budget(asked.kv_budget, "TensorRT-LLM")
    if budget is not None:
        cache["max_gpu_total_bytes"] = budget
    cache |= {name: given[name] for name in _CACHE if name in given}
    if cache and _FRACTION in given:
        cache[_FRACTION] = given[_FRACTION]
    args: dict[str, Any] = {"kv_cache_config": cache} if cache else {}
    if launch.unless_auto(asked.dtype):
        args["dtype"] = asked.dtype
    if given.get("enable_attention_dp"):
        args["enable_attention_dp"] = True
    return args


def _yaml(args: Mapping[str, Any]) -> str:
    """Words, numbers and lists of them, one level deep: YAML without a library for it."""
    lines: list[str] = []
    for name, value in args.items():
        if isinstance(value, Mapping):
            lines.append(f"{name}:")
            lines += [f"  {key}: {_scalar(inner)}" for key, inner in value.items()]
        else:
            lines.append(f"{name}: {_scalar(value)}")
    return "".join(f"{line}\n" for line in lines)


def _scalar(value: Any) -> str:
    if isinstance(value, str) and _PLAIN.fullmatch(value):
        return value
    return json.dumps(list(value) if isinstance(value, tuple) else value)
