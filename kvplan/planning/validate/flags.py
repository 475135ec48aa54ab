"""The engine's options that a record states, by the engine's own names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kvplan.measurement import Measurement
from kvplan.models.spec import ModelSpec
from kvplan.planning.validate.lacking import LackingError, extra

# vLLM's options by their own names, which decide on pages and pool; null is left to the engine.
PAGE_OPTIONS = (
    "block_size",
    "max_num_seqs",
    "max_num_batched_tokens",
    "enable_chunked_prefill",
    "enable_prefix_caching",
    "disable_hybrid_kv_cache_manager",
    "num_gpu_blocks_override",
    "async_scheduling",
    "attention_backend",
    "mamba_block_size",
    "mamba_cache_dtype",
    "mamba_cache_mode",
    "mamba_ssm_cache_dtype",
    "kv_cache_dtype_skip_layers",
    "speculative_config",
    "enable_expert_parallel",
    "usage_context",
    "use_replayssm",
    "use_v1",
)
MEMORY_OPTIONS = (
    "gpu_memory_utilization",
    "enforce_eager",
    "kv_cache_memory_bytes",
    "limit_mm_per_prompt",
    "cudagraph_capture_sizes",
    "cudagraph_mode",
    "max_cudagraph_capture_size",
    "enable_lora",
    "max_loras",
    "max_lora_rank",
)
# Some releases of vLLM had two engines.
_GENERATIONS = {"V0": False, "V1": True}


def stated_options(record: Measurement, model: ModelSpec, names: tuple[str, ...]) -> dict[str, Any]:
    """The engine's options that the record states.

    Raises:
        LackingError: adapters were enabled, and their rank or number is wanted and not stated.
    """
    stated = {**record.model_dump(exclude_none=True), **_translated(record)}
    # A model with recurrent layers logs the block that vLLM worked out, not one that was asked.
    if not record.block_size or any(cache.kind == "recurrent" for cache in model.caches):
        stated.pop("block_size", None)
    if "enable_lora" in names:
        _check_adapters(stated)
    return {name: stated[name] for name in names if stated.get(name) is not None}


def _translated(record: Measurement) -> dict[str, Any]:
    """What records note in their own words → the engine's options."""
    options: dict[str, Any] = {}
    draft, lora = extra(record, "speculative"), extra(record, "lora")
    if isinstance(draft, Mapping) and draft.get("method"):
        named = {"method": draft["method"], "num_speculative_tokens": draft.get("tokens")}
        options["speculative_config"] = {
            key: value for key, value in named.items() if value is not None
        }
    generation = extra(record, "engine_generation")
    if isinstance(generation, str) and generation in _GENERATIONS:
        options["use_v1"] = _GENERATIONS[generation]
    if isinstance(lora, Mapping) and lora.get("enabled"):
        options["enable_lora"] = True
        options["max_lora_rank"] = lora.get("max_rank")
        options["max_loras"] = lora.get("max_adapters")
    return options


def _check_adapters(stated: Mapping[str, Any]) -> None:
    """Refuses to size adapters whose rank or number nobody wrote down.

    Raises:
        LackingError: one is missing.
    """
    if stated.get("enable_lora") is not True:
        return
    for name in ("max_loras", "max_lora_rank"):
        if stated.get(name) is None:
            raise LackingError(f"{name} is not stated: adapters were enabled")
