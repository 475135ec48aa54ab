"""vLLM's option names and types: what is sized, what is only noted, what is refused.

Names are those of EngineArgs (vllm/engine/arg_utils.py), dashes or underscores alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kvplan.engines.vllm import speculative, values
from kvplan.engines.vllm.speculative import Speculative
from kvplan.engines.vllm.towers import off
from kvplan.errors import NotModelledError, UnknownNameError, UsageError, nearest, shown

# Source: vLLM 0.33.0, vllm/config/cache.py (MambaDType, MambaCacheMode; "all" was a mode in
# 0.15 to 0.31) and vllm/config/compilation.py (CUDAGraphMode).
_STATE_TYPES = ("auto", "float32", "float16", "bfloat16")
_STATE_MODES = ("none", "align", "all")
_GRAPH_MODES = ("NONE", "PIECEWISE", "FULL", "FULL_DECODE_ONLY", "FULL_AND_PIECEWISE")
# How the engine is started; vLLM's own names (vllm/usage/usage_lib.py) will do too.
_USED = ("serve", "llm", "other")
_ENTRIES = {
    "OPENAI_API_SERVER": "serve",
    "LLM_CLASS": "llm",
    "OPENAI_BATCH_RUNNER": "other",
    "ENGINE_CONTEXT": "other",
}
# Source: vLLM 0.33.0, vllm/config/lora.py MaxLoRARanks.
_RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)
_PERFORMANCE_MODES = ("balanced", "interactivity", "throughput")


def _state_type(name: str, value: Any) -> str:
    return values.word(name, value, _STATE_TYPES)


def _state_mode(name: str, value: Any) -> str:
    return values.word(name, value, _STATE_MODES)


def _performance(name: str, value: Any) -> str:
    return values.word(name, value, _PERFORMANCE_MODES)


def _entry(name: str, value: Any) -> str:
    return values.word(name, _ENTRIES.get(value, value) if isinstance(value, str) else value, _USED)


def _adapter_rank(name: str, value: Any) -> int:
    rank = values.count(name, value)
    if rank not in _RANKS:
        raise UsageError(
            f"{name} is one of {', '.join(map(str, _RANKS))}, not {rank:,}.",
            hint="Take the next one that is not below the ranks of your adapters.",
        )
    return rank


def _graph_mode(name: str, value: Any) -> str:
    return values.word(name, value, _GRAPH_MODES)


# What `settings.Settings` holds, by name; the order is that of reports.
READERS: dict[str, Callable[[str, Any], Any]] = {
    "gpu_memory_utilization": values.share,
    "max_num_seqs": values.count,
    "max_num_batched_tokens": values.count,
    "block_size": values.count,
    "enforce_eager": values.flag,
    "enable_prefix_caching": values.flag,
    "enable_chunked_prefill": values.flag,
    "disable_hybrid_kv_cache_manager": values.flag,
    "num_gpu_blocks_override": values.count,
    "kv_cache_memory_bytes": values.size,
    "async_scheduling": values.flag,
    "enable_expert_parallel": values.flag,
    "mamba_cache_dtype": _state_type,
    "mamba_ssm_cache_dtype": _state_type,
    "mamba_block_size": values.count,
    "mamba_cache_mode": _state_mode,
    "use_replayssm": values.flag,
    "kv_cache_dtype_skip_layers": values.words,
    "speculative_config": speculative.read,
    "performance_mode": _performance,
    "usage_context": _entry,
    "all2all_backend": values.word,
    "cudagraph_capture_sizes": values.counts,
    "max_cudagraph_capture_size": values.amount,
    "cudagraph_mode": _graph_mode,
    "limit_mm_per_prompt": values.limits,
    "attention_backend": values.word,
    "enable_lora": values.flag,
    "max_loras": values.count,
    "max_lora_rank": _adapter_rank,
    # The environment's VLLM_USE_V1: which of two engines 0.8 to 0.10 start.
    "use_v1": values.flag,
}
# Taken and named to the reader, but no byte of the plan depends on them yet.
UNSIZED = ("attention_backend",)
# vLLM's shorthand for keys of speculative_config (0.33.0, create_speculative_config).
_SHORTHAND = {
    "spec_method": "method",
    "spec_model": "model",
    "spec_tokens": "num_speculative_tokens",
}
# vLLM has these, kvplan does not size what they take: refused rather than ignored,
# unless given as it is by default, which follows the name.
_NOT_YET: Mapping[str, Any] = {
    "cpu_offload_gb": 0,
    "prefill_context_parallel_size": 1,
    "enable_dbo": False,
    "enable_eplb": False,
    "disable_sliding_window": False,
}
# What enable_lora fills in. Source: vLLM 0.33.0, vllm/config/lora.py.
ADAPTERS: Mapping[str, int] = {"max_loras": 1, "max_lora_rank": 16}
# Arguments of their own; given as options they would silently compete.
_ARGUMENTS = {
    "model": "the first argument",
    "max_model_len": "--context",
    "tensor_parallel_size": "--tp",
    "pipeline_parallel_size": "--pp",
    "data_parallel_size": "--dp",
    "decode_context_parallel_size": "--dcp",
    "kv_cache_dtype": "--kv-dtype",
    "dtype": "--dtype",
    "quantization": "--weights",
}


def read_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Checks names and types; names come back with underscores.

    Raises:
        UnknownNameError: vLLM has no such option; the nearest name is the hint.
        UsageError: a value of the wrong type or out of range, or a name given twice.
        NotModelledError: an option of vLLM's that kvplan does not size yet.
    """
    read: dict[str, Any] = {}
    for name, value in unfolded(options).items():
        reader = READERS.get(name)
        if reader is not None:
            read[name] = reader(name, value)
        elif name in _ARGUMENTS:
            raise UsageError(f"{name} is not set with -o.", hint=f"Use {_ARGUMENTS[name]}.")
        elif name in _NOT_YET:
            _check_off(name, value)
        else:
            raise _unknown(name)
    return read


def unsized(given: Mapping[str, Any]) -> tuple[str, ...]:
    """Of checked options, the names that no byte of the plan depends on."""
    names = [name for name in UNSIZED if name in given]
    if "limit_mm_per_prompt" in given and not off(given["limit_mm_per_prompt"]):
        names.append("limit_mm_per_prompt")
    if not given.get("enable_lora"):
        names += [name for name in ADAPTERS if name in given]
    config = given.get("speculative_config")
    if isinstance(config, Speculative):
        names += [f"speculative_config.{key}" for key in config.other]
    return tuple(names)


def unfolded(options: Mapping[str, Any]) -> dict[str, Any]:
    """Dashes as underscores, and vLLM's shorthand written out."""
    plain: dict[str, Any] = {}
    drafts: dict[str, Any] = {}
    for written, value in options.items():
        name = written.strip().removeprefix("--").replace("-", "_")
        home, key = (drafts, _SHORTHAND[name]) if name in _SHORTHAND else (plain, name)
        if key in home:
            raise UsageError(f"{name} is given twice.", hint="Keep one of the two.")
        home[key] = value
    if drafts:
        config = values.mapping("speculative_config", plain.get("speculative_config", {}))
        twice = sorted(config.keys() & drafts.keys())
        if twice:
            raise UsageError(
                f"speculative_config.{twice[0]} is given twice.",
                hint="vLLM takes the short option or the key of the mapping, not both.",
            )
        plain["speculative_config"] = config | drafts
    return plain


def _check_off(name: str, value: Any) -> None:
    if value != _NOT_YET[name]:
        raise NotModelledError(
            f"kvplan does not size vLLM's {name} yet.", hint="Leave it out to plan without it."
        )


def _unknown(name: str) -> UnknownNameError:
    known = (*READERS, *_SHORTHAND, *_NOT_YET, *_ARGUMENTS)
    return UnknownNameError(
        f"vLLM has no option {shown(name)} that kvplan knows.",
        hint=nearest(name, known) or f"It knows {', '.join(READERS)}.",
    )
