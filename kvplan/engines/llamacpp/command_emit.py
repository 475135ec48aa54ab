"""A plan → the `llama-server` line that realises it: what differs from the server's defaults.

Source: ggml-org/llama.cpp@0c1e57098 common/arg.cpp.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kvplan.engines import launch
from kvplan.engines.launch import Asked, Start
from kvplan.engines.llamacpp.options import read_options
from kvplan.engines.llamacpp.settings import N_BATCH, N_UBATCH
from kvplan.errors import UsageError
from kvplan.plan import Plan

# Options of the library that the server has no flags for.
_NO_FLAGS = ("n_outputs_max", "n_rs_seq")
_UNLESS: tuple[tuple[str, str, Any], ...] = (
    ("-ctk", "cache_type_k", "f16"),
    ("-ctv", "cache_type_v", "f16"),
    ("-b", "n_batch", N_BATCH),
)
_AS_GIVEN = (
    ("--spec-type", "spec_type"),
    ("--spec-draft-n-max", "spec_draft_n_max"),
    ("-ctkd", "cache_type_k_draft"),
    ("-ctvd", "cache_type_v_draft"),
    ("--cache-ram", "cache_ram"),
    ("--ctx-checkpoints", "ctx_checkpoints"),
)
_SWITCHES = (
    ("-kvu", "kv_unified"),
    ("--swa-full", "swa_full"),
    ("-nkvo", "no_kv_offload"),
    ("--cpu-moe", "cpu_moe"),
)


def emit(plan: Plan, asked: Asked) -> str:
    """The command line, quoted for a POSIX shell.

    Raises:
        UsageError: llama-server has no flags for what was planned.
    """
    return start(plan, asked).line()


def start(plan: Plan, asked: Asked) -> Start:
    """The command; see `emit`."""
    given = read_options(asked.options)
    for name in _NO_FLAGS:
        if name in given:
            raise UsageError(
                f"llama-server has no flag for {name}.",
                hint="Leave it out; the server sets it by itself.",
                location="--emit",
            )
    chosen = plan.engine.options
    words = ["llama-server", "-m", launch.gguf_file(plan, asked, "llama-server")]
    words += ["-c", str(chosen["n_ctx"]), "-np", str(chosen["n_seq_max"])]
    words += ["-ngl", _layers(plan)]
    words += _split(given)
    for flag, name, usual in _UNLESS:
        words += [flag, str(chosen[name])] if chosen[name] != usual else []
    words += _batch(given)
    words += ["-fa", "on" if chosen["flash_attn"] else "off"] if "flash_attn" in given else []
    words += [flag for flag, name in _SWITCHES if chosen.get(name)]
    words += _experts(plan)
    words += ["-md", launch.gguf_name(given["model_draft"])] if "model_draft" in given else []
    for flag, name in _AS_GIVEN:
        words += [flag, str(given[name])] if name in given else []
    return Start(tuple(words))


def _layers(plan: Plan) -> str:
    """``all``, or their number where some stay on the host."""
    layers = sum(device.layers for device in plan.devices)
    on_gpus = int(plan.engine.options["n_gpu_layers"])
    return "all" if on_gpus > layers else str(on_gpus)


def _split(given: Mapping[str, Any]) -> list[str]:
    shares = given.get("tensor_split")
    return ["-ts", ",".join(f"{share:g}" for share in shares)] if shares else []


def _batch(given: Mapping[str, Any]) -> list[str]:
    size = given.get("n_ubatch", N_UBATCH)
    return ["-ub", str(size)] if size != N_UBATCH else []


def _experts(plan: Plan) -> list[str]:
    count = plan.engine.options.get("n_cpu_moe", 0)
    whole = plan.engine.options.get("cpu_moe")
    return ["--n-cpu-moe", str(count)] if count and not whole else []
