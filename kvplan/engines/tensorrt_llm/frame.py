"""Everything that is settled before a layer is looked at: release, path, device, types, options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kvplan.engines.base import Setup
from kvplan.engines.tensorrt_llm import history
from kvplan.engines.tensorrt_llm.options import READERS, UNSIZED, read_options
from kvplan.errors import EngineRefusesError, NotModelledError, UnknownNameError, nearest, shown
from kvplan.hardware import DeviceMemory, device_memory
from kvplan.models.formats import DTYPE_BYTES, Dtype
from kvplan.models.spec import ModelSpec

# tensorrt_llm/builder.py BuildConfig, and llm_args.py of the PyTorch path.
MAX_NUM_TOKENS = 8192
MAX_BATCH_SIZE = 2048
FRACTION = 0.9
UNSTATED_CONTEXT = 2048
# A bare amount of memory takes the rules of an H100.
CUSTOM_SM = (9, 0)
_TYPES = ("auto", "fp8", "nvfp4")
# What a checkpoint may prescribe (kv_cache_quant_algo), and engines of the C++ path may hold.
_PRESCRIBED = {"fp8": "fp8", "nvfp4": "nvfp4", "int8": "fp8"}
NVFP4_BLOCK = 16


@dataclass(frozen=True, slots=True)
class Stored:
    """How the pool holds an element.

    Attributes:
        name: The type in force.
        bits: Bits an element.
        scale_block: Elements that share a byte of scale, or None.
    """

    name: str
    bits: int
    scale_block: int | None = None


@dataclass(frozen=True, slots=True)
class Settings:
    """Resolved options. None: not given."""

    backend: history.Backend
    free_gpu_memory_fraction: float
    tokens_per_block: int
    max_num_tokens: int
    max_batch_size: int
    max_seq_len: int
    enable_block_reuse: bool
    enable_attention_dp: bool
    moe_expert_parallel_size: int
    assumed: tuple[str, ...]
    max_attention_window: tuple[int, ...] | None = None
    max_tokens: int | None = None
    max_gpu_total_bytes: int | None = None
    host_cache_size: int | None = None
    unsized: tuple[str, ...] = ()

    def as_options(self) -> dict[str, Any]:
        """Option names and values for people and JSON; what is unset is left out."""
        found = {name: getattr(self, name) for name in READERS}
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in found.items()
            if value is not None
        }


@dataclass(frozen=True, slots=True)
class Frame:
    """A setup with what follows from it.

    Attributes:
        dtype: The type that the model runs in.
        stored: The cache type in force.
        attention_tp: Ranks that split attention.
    """

    setup: Setup
    version: str
    rules: history.Rules
    device: DeviceMemory
    sm: tuple[int, int]
    dtype: Dtype
    stored: Stored
    settings: Settings

    @property
    def attention_tp(self) -> int:
        """1 under data-parallel attention, which keeps whole heads on every rank."""
        return 1 if self.settings.enable_attention_dp else self.setup.parallelism.tp

    @property
    def attention_groups(self) -> int:
        """Ranks of a replica that each serve requests of their own."""
        return self.setup.parallelism.tp // self.attention_tp


def frame_of(setup: Setup) -> Frame:
    """Settles release, path, device, types and options.

    Raises:
        EngineRefusesError, NotModelledError, UsageError: see `kvplan.engines.base.Engine`.
    """
    version = setup.version or history.NEWEST
    rules = history.rules_for(version)
    settings = _resolve(setup, rules, version)
    dtype = _compute_dtype(setup.model, setup.dtype)
    return Frame(
        setup=setup,
        version=version,
        rules=rules,
        device=device_memory(setup.gpu),
        sm=_capability(setup),
        dtype=dtype,
        stored=_stored(setup, dtype),
        settings=settings,
    )


def _resolve(setup: Setup, rules: history.Rules, version: str) -> Settings:
    given = read_options(setup.options)
    if given.get("backend") == "pytorch" and not rules.has_pytorch:
        raise EngineRefusesError(
            f"TensorRT-LLM {version} has no PyTorch backend.", hint="Leave out -o backend."
        )
    filled: dict[str, Any] = {
        "backend": rules.backend,
        "free_gpu_memory_fraction": FRACTION,
        "tokens_per_block": rules.tokens_per_block,
        "max_num_tokens": MAX_NUM_TOKENS,
        "max_batch_size": MAX_BATCH_SIZE,
        "max_seq_len": setup.context or setup.model.max_context or UNSTATED_CONTEXT,
        "enable_block_reuse": True,
        "enable_attention_dp": False,
        "moe_expert_parallel_size": 1,
    }
    experts, tp = given.get("moe_expert_parallel_size", 1), setup.parallelism.tp
    if experts not in (1, tp):
        raise NotModelledError(
            f"kvplan does not model experts over {experts} of {tp} ranks.",
            hint=f"Use moe_expert_parallel_size 1 or {tp}.",
        )
    return Settings(
        **(filled | given),
        assumed=tuple(name for name in filled if name not in given),
        unsized=tuple(name for name in UNSIZED if name in given),
    )


def _stored(setup: Setup, dtype: Dtype) -> Stored:
    asked = setup.kv_dtype
    if asked not in _TYPES:
        raise UnknownNameError(
            f"TensorRT-LLM has no KV cache type {shown(asked)}.",
            hint=nearest(asked, _TYPES) or f"It has {', '.join(_TYPES)}.",
        )
    if asked == "auto":
        asked = _PRESCRIBED.get(setup.model.kv_scheme or "", dtype)
    if asked == "nvfp4":
        return Stored("nvfp4", 4, NVFP4_BLOCK)
    if asked == "fp8":
        return Stored("fp8", 8)
    return Stored(dtype, 8 * DTYPE_BYTES[dtype])


def _compute_dtype(model: ModelSpec, asked: str) -> Dtype:
    names: dict[str, Dtype] = {
        "auto": "bfloat16" if model.dtype == "float32" else model.dtype,
        "bfloat16": "bfloat16",
        "float16": "float16",
        "float32": "float32",
    }
    if asked not in names:
        raise UnknownNameError(
            f"TensorRT-LLM has no dtype {shown(asked)}.", hint=f"Use one of {', '.join(names)}."
        )
    return names[asked]


def _capability(setup: Setup) -> tuple[int, int]:
    gpu = setup.gpu
    if gpu.vendor not in ("nvidia", "custom"):
        raise EngineRefusesError(
            f"TensorRT-LLM runs on NVIDIA GPUs, not on {gpu.id}.",
            hint="Choose an NVIDIA GPU, or another engine.",
        )
    return gpu.sm or CUSTOM_SM
