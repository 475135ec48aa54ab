"""vLLM's options resolved: what was given, and what this release fills in on this GPU."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kvplan.engines.base import parse_version
from kvplan.engines.vllm import batches
from kvplan.engines.vllm import options as names
from kvplan.engines.vllm.defaults import Attention, caches_prefixes, is_v0
from kvplan.engines.vllm.history import NEWEST, Rules
from kvplan.engines.vllm.options import read_options
from kvplan.engines.vllm.speculative import Speculative
from kvplan.hardware import GpuSpec

__all__ = ["Settings", "Speculative", "read_options", "resolve"]


@dataclass(frozen=True, slots=True)
class Settings:
    """Resolved options. None: not given, and vLLM decides by the model.

    Attributes:
        in_flight_tokens: max_num_batched_tokens times the batches that may run at once.
        kv_cache_dtype_skip_layers: Layers whose cache is not quantized: indices, or
            ``sliding_window``; empty: none.
        speculative: The speculative_config.
        unsized: Options that were given and that no byte of the plan depends on.
        assumed: Names of the options that kvplan filled in.
    """

    gpu_memory_utilization: float
    max_num_seqs: int
    max_num_batched_tokens: int
    in_flight_tokens: int
    enforce_eager: bool
    enable_prefix_caching: bool
    disable_hybrid_kv_cache_manager: bool
    async_scheduling: bool
    enable_expert_parallel: bool
    assumed: tuple[str, ...]
    block_size: int | None = None
    num_gpu_blocks_override: int | None = None
    kv_cache_memory_bytes: int | None = None
    enable_chunked_prefill: bool | None = None
    mamba_cache_dtype: str | None = None
    mamba_ssm_cache_dtype: str | None = None
    mamba_block_size: int | None = None
    mamba_cache_mode: str | None = None
    use_replayssm: bool | None = None
    kv_cache_dtype_skip_layers: tuple[str, ...] = ()
    speculative: Speculative | None = None
    performance_mode: str | None = None
    cudagraph_capture_sizes: tuple[int, ...] | None = None
    max_cudagraph_capture_size: int | None = None
    cudagraph_mode: str | None = None
    usage_context: str | None = None
    all2all_backend: str | None = None
    limit_mm_per_prompt: Mapping[str, int] | None = None
    attention_backend: str | None = None
    enable_lora: bool | None = None
    max_loras: int | None = None
    max_lora_rank: int | None = None
    use_v1: bool | None = None
    unsized: tuple[str, ...] = ()

    def as_options(self) -> dict[str, Any]:
        """Option names and values for people and JSON; what is unset is left out."""
        found = {name: _plain(getattr(self, _FIELDS.get(name, name))) for name in names.READERS}
        return {name: value for name, value in found.items() if value not in (None, [])}


# Options whose field has a name of its own.
_FIELDS = {"speculative_config": "speculative"}


def _plain(value: Any) -> Any:
    if isinstance(value, Speculative):
        return value.as_mapping()
    return list(value) if isinstance(value, tuple) else value


def resolve(
    options: Mapping[str, Any],
    rules: Rules,
    gpu: GpuSpec,
    *,
    total_bytes: int,
    context: int,
    pp: int,
    dp: int = 1,
    version: str = NEWEST,
    attention: Attention = "decoder",
) -> Settings:
    """Fills in what the user left out, as this release does on this GPU.

    Args:
        options: The engine's own names and values; ``usage_context`` says how it is started.
        rules: Those of the release.
        gpu: The device.
        total_bytes: Its memory as the engine sees it.
        context: Tokens a request may have.
        pp: Pipeline stages.
        dp: Replicas.
        version: The release.
        attention: What the model keeps of a request.

    Raises:
        EngineRefusesError: more requests than batched tokens.
        UsageError, NotModelledError: see `read_options`.
    """
    given = read_options(options)
    situation = batches.Situation(
        gpu=gpu,
        total_bytes=total_bytes,
        context=context,
        dp=dp,
        version=parse_version(version),
        attention=attention,
    )
    step = batches.resolve(given, situation)
    overlapping = given.get("async_scheduling", rules.async_scheduling)
    at_once = pp + 1 if overlapping else pp
    in_flight = at_once if rules.window_tokens == "in_flight" else 1
    filled: dict[str, Any] = {
        "gpu_memory_utilization": rules.utilization,
        "max_num_seqs": step.seqs,
        "max_num_batched_tokens": step.tokens,
        "enforce_eager": False,
        "enable_prefix_caching": caches_prefixes(
            situation.version, attention, v0=is_v0(situation.version, given.get("use_v1"))
        ),
        "disable_hybrid_kv_cache_manager": False,
        "async_scheduling": overlapping,
        "enable_expert_parallel": False,
    }
    if given.get("enable_lora"):
        filled |= names.ADAPTERS
    return Settings(
        **(filled | {_FIELDS.get(name, name): value for name, value in given.items()}),
        in_flight_tokens=in_flight * step.tokens,
        unsized=names.unsized(given),
        assumed=tuple(name for name in filled if name not in given),
    )
