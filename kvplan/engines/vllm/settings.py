"""vLLM's own options: names, types, defaults by GPU, and what kvplan filled in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kvplan.engines.vllm.history import Rules
from kvplan.errors import (
    EngineRefusesError,
    NotModelledError,
    UnknownNameError,
    UsageError,
    nearest,
    shown,
)
from kvplan.hardware import GpuSpec
from kvplan.units import GIB, MAX_BYTES, parse_bytes


def _integer(name: str, value: Any, least: int, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise UsageError(
            f"{name} is a whole number from {least:,} to {most:,}, not {shown(value)}.",
            hint=f"Write -o {name}=64, or leave it out for vLLM's own default.",
        )
    return value


def _count(name: str, value: Any) -> int:
    return _integer(name, value, 1, 2**31)


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise UsageError(
            f"{name} is true or false, not {shown(value)}.", hint=f"Write -o {name}=true."
        )
    return value


def _share(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
        raise UsageError(
            f"{name} is a share of the card, above 0 and at most 1, not {shown(value)}.",
            hint=f"Write -o {name}=0.92.",
        )
    return float(value)


def _bytes(name: str, value: Any) -> int:
    return _integer(name, parse_bytes(value) if isinstance(value, str) else value, 1, MAX_BYTES)


_READERS: dict[str, Callable[[str, Any], Any]] = {
    "gpu_memory_utilization": _share,
    "max_num_seqs": _count,
    "max_num_batched_tokens": _count,
    "block_size": _count,
    "enforce_eager": _flag,
    "enable_prefix_caching": _flag,
    "disable_hybrid_kv_cache_manager": _flag,
    "num_gpu_blocks_override": _count,
    "kv_cache_memory_bytes": _bytes,
    "async_scheduling": _flag,
    "enable_expert_parallel": _flag,
}
# vLLM has these, kvplan does not size them yet: refused rather than ignored.
_NOT_YET = (
    "mamba_cache_dtype",
    "mamba_ssm_cache_dtype",
    "kv_cache_dtype_skip_layers",
    "speculative_config",
    "use_replayssm",
    "enable_lora",
    "max_loras",
    "max_lora_rank",
    "limit_mm_per_prompt",
    "cudagraph_capture_sizes",
)
# Arguments of their own; given as options they would silently compete.
_ARGUMENTS = {
    "max_model_len": "--context",
    "tensor_parallel_size": "--tp",
    "pipeline_parallel_size": "--pp",
    "data_parallel_size": "--dp",
    "decode_context_parallel_size": "--dcp",
    "kv_cache_dtype": "--kv-dtype",
    "dtype": "--dtype",
    "quantization": "--weights",
}


@dataclass(frozen=True, slots=True)
class Settings:
    """Resolved options.

    Attributes:
        in_flight_tokens: max_num_batched_tokens times the batches that may run at once.
        assumed: Names of the options that kvplan filled in.
    """

    gpu_memory_utilization: float
    max_num_seqs: int
    max_num_batched_tokens: int
    in_flight_tokens: int
    block_size: int | None
    enforce_eager: bool
    enable_prefix_caching: bool
    disable_hybrid_kv_cache_manager: bool
    num_gpu_blocks_override: int | None
    kv_cache_memory_bytes: int | None
    async_scheduling: bool
    enable_expert_parallel: bool
    assumed: tuple[str, ...]

    def as_options(self) -> dict[str, Any]:
        """Option names and values for people; what is unset is left out."""
        values = {name: getattr(self, name) for name in _READERS}
        return {name: value for name, value in values.items() if value is not None}


def read_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Checks names and types.

    Raises:
        UnknownNameError: vLLM has no such option; the nearest name is the hint.
        UsageError: a value of the wrong type or out of range.
        NotModelledError: an option of vLLM's that kvplan does not size yet.
    """
    read = {}
    for name, value in options.items():
        reader = _READERS.get(name)
        if reader is not None:
            read[name] = reader(name, value)
        elif name in _ARGUMENTS:
            raise UsageError(f"{name} is not set with -o.", hint=f"Use {_ARGUMENTS[name]}.")
        elif name in _NOT_YET:
            raise NotModelledError(
                f"kvplan does not size vLLM's {name} yet.", hint="Leave it out to plan without it."
            )
        else:
            raise UnknownNameError(
                f"vLLM has no option {shown(name)} that kvplan knows.",
                hint=nearest(name, (*_READERS, *_NOT_YET, *_ARGUMENTS))
                or f"It knows {', '.join(_READERS)}.",
            )
    return read


def batch_defaults(gpu: GpuSpec, total_bytes: int) -> tuple[int, int]:
    """Default (max_num_batched_tokens, max_num_seqs) of `vllm serve`.

    Source: vLLM 0.33.0, EngineArgs.get_batch_defaults.
    """
    if total_bytes >= 160 * GIB:
        return 16384, 1024
    # The A100 by its name, GB10 by its compute capability: so vLLM tells them.
    small_chip = "a100" in gpu.name.lower() or gpu.sm == (12, 1)
    if total_bytes >= 70 * GIB and not small_chip:
        return 8192, 1024
    return 2048, 256


def resolve(
    options: Mapping[str, Any],
    rules: Rules,
    gpu: GpuSpec,
    *,
    total_bytes: int,
    context: int,
    pp: int,
) -> Settings:
    """Fills in what the user left out, as this release does on this GPU.

    Raises:
        EngineRefusesError: more requests than batched tokens, asked for explicitly.
    """
    given = read_options(options)
    default_tokens, default_seqs = batch_defaults(gpu, total_bytes)
    seqs = given.get("max_num_seqs", default_seqs)
    tokens = given.get("max_num_batched_tokens")
    if tokens is None:
        # Source: get_batch_defaults clamps only what the user left out.
        tokens = min(default_tokens, seqs * context)
    if "max_num_seqs" not in given:
        seqs = min(seqs, tokens)
    elif seqs > tokens:
        raise EngineRefusesError(
            f"vLLM refuses max_num_seqs ({seqs:,}) above max_num_batched_tokens ({tokens:,}).",
            hint=f"Raise max_num_batched_tokens to {seqs:,}, or lower max_num_seqs.",
        )
    overlapping = given.get("async_scheduling", rules.async_scheduling)
    batches = pp + 1 if overlapping else pp
    in_flight = batches if rules.window_tokens == "in_flight" else 1
    return Settings(
        gpu_memory_utilization=given.get("gpu_memory_utilization", rules.utilization),
        max_num_seqs=seqs,
        max_num_batched_tokens=tokens,
        in_flight_tokens=in_flight * tokens,
        block_size=given.get("block_size"),
        enforce_eager=given.get("enforce_eager", False),
        enable_prefix_caching=given.get("enable_prefix_caching", True),
        disable_hybrid_kv_cache_manager=given.get("disable_hybrid_kv_cache_manager", False),
        num_gpu_blocks_override=given.get("num_gpu_blocks_override"),
        kv_cache_memory_bytes=given.get("kv_cache_memory_bytes"),
        async_scheduling=overlapping,
        enable_expert_parallel=given.get("enable_expert_parallel", False),
        assumed=tuple(
            name
            for name in _READERS
            if name not in given
            and name not in ("block_size", "num_gpu_blocks_override", "kv_cache_memory_bytes")
        ),
    )
