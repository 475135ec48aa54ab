"""Everything that is settled before a layer is looked at: release, device, types, settings."""

from __future__ import annotations

from dataclasses import dataclass

from kvplan.engines.base import Setup
from kvplan.engines.sglang import backends, defaults, history, kv_dtypes, settings, states
from kvplan.errors import EngineRefusesError, UsageError, shown
from kvplan.hardware import DeviceMemory, GpuSpec, device_memory
from kvplan.models.caches import FullCache, IndexerCache, LatentCache, RecurrentCache
from kvplan.models.formats import DTYPE_BYTES, Dtype
from kvplan.models.spec import ModelSpec
from kvplan.units import MIB

# A bare amount of memory takes the rules of an H100 (compute capability).
CUSTOM_SM = (9, 0)
BFLOAT16_SM = (8, 0)
BLACKWELL = 10
# sglang/srt/utils/hf_transformers/common.py, get_context_length: a configuration without any.
UNSTATED_CONTEXT = 2048
_NO_DEVICE = ("apple", "google", "aws")
# Only ModelOpt's note on the cache is read (sglang/srt/mem_cache/kv_cache_dtype.py).
_MODELOPT = "modelopt"


@dataclass(frozen=True, slots=True)
class Frame:
    """A setup with what follows from it.

    Attributes:
        dtype: The type that the model runs in.
        stored: The cache type in force.
        page: Tokens of a page.
        attention_tp: Ranks that split attention.
        slots_per_request: State slots of a running request; 0 without states.
    """

    setup: Setup
    version: str
    rules: history.Rules
    device: DeviceMemory
    sm: tuple[int, int]
    dtype: Dtype
    stored: kv_dtypes.Stored
    settings: settings.Settings
    page: int
    slots_per_request: int

    @property
    def context(self) -> int:
        """context_length."""
        return self.setup.context or self.setup.model.max_context or UNSTATED_CONTEXT

    @property
    def attention_tp(self) -> int:
        """Ranks that split attention: those of one group of data-parallel attention."""
        return self.setup.parallelism.tp // self.settings.dp_size

    @property
    def sparse(self) -> bool:
        """The model's latent caches are read through an indexer."""
        return is_sparse(self.setup.model)

    @property
    def raw_rows(self) -> bool:
        """Sparse attention's kernels read fp8 rows without scales (trtllm's, on Blackwell)."""
        return self.sm[0] >= BLACKWELL


def frame_of(setup: Setup) -> Frame:
    """Settles release, device, types and settings.

    Raises:
        EngineRefusesError, NotModelledError, UsageError: see `kvplan.engines.base.Engine`.
    """
    version = setup.version or history.NEWEST
    rules, device, sm = history.rules_for(version), device_memory(setup.gpu), capability(setup.gpu)
    model, dtype = setup.model, compute_dtype(setup.model, setup.dtype, sm)
    resolved = settings.resolve(
        setup.options,
        rules,
        _card(setup, device),
        architecture=model.architecture,
        parallelism=setup.parallelism,
    )
    slots = _slots(model, rules, resolved)
    return Frame(
        setup=setup,
        version=version,
        rules=rules,
        device=device,
        sm=sm,
        dtype=dtype,
        stored=kv_dtypes.resolve(
            setup.kv_dtype,
            dtype,
            prescribed=prescribed(model),
            sparse=is_sparse(model),
            sm=sm,
        ),
        settings=resolved,
        page=_page(model, sm, resolved, one_token_states=slots == states.SLOTS_WITH_CACHE),
        slots_per_request=slots,
    )


def prescribed(model: ModelSpec) -> str | None:
    """The cache type that the checkpoint asks for in the way that SGLang reads."""
    scheme = model.quantization or ""
    return model.kv_scheme if scheme.startswith(_MODELOPT) else None


def is_sparse(model: ModelSpec) -> bool:
    """Whether the model's latent caches are read through an indexer."""
    return is_latent(model) and any(isinstance(c, IndexerCache) for c in model.caches)


def is_latent(model: ModelSpec) -> bool:
    """Whether the model's attention is MLA."""
    return any(isinstance(cache, LatentCache) for cache in model.caches)


def _card(setup: Setup, device: DeviceMemory) -> defaults.Card:
    spread, model = setup.parallelism, setup.model
    vision = sum(w.parameters for w in model.weights if w.component == "vision")
    return defaults.Card(
        mib=card_mib(setup.gpu, device),
        tp=spread.tp,
        pp=spread.pp,
        attn_dp=1,
        latent=is_latent(model),
        prefill_graphs=spread.pp == 1 and not vision and not _is_kda(model),
        decode_graphs=True,
        deepep=False,
        draft=None,
        vision_parameters=vision,
    )


def card_mib(gpu: GpuSpec, device: DeviceMemory) -> float:
    """The memory that nvidia-smi prints; where that is not known, what torch sees."""
    if gpu.driver_total_mib is not None:
        return gpu.driver_total_mib.value
    return device.total / MIB


def _is_kda(model: ModelSpec) -> bool:
    """Kimi's delta attention, whose prefill is not captured."""
    return any(
        isinstance(cache, RecurrentCache)
        and any(state.name == "recurrent" and state.dtype == "float32" for state in cache.states)
        for cache in model.caches
    ) and is_latent(model)


def _slots(model: ModelSpec, rules: history.Rules, resolved: settings.Settings) -> int:
    if not any(isinstance(cache, RecurrentCache) for cache in model.caches):
        return 0
    return states.slots_per_request(
        model.architecture,
        cached=not resolved.disable_radix_cache,
        tracked=rules.extra_buffer,
        strategy=resolved.mamba_radix_cache_strategy,
        overlap=not resolved.disable_overlap_schedule,
    )


def _page(
    model: ModelSpec, sm: tuple[int, int], resolved: settings.Settings, *, one_token_states: bool
) -> int:
    headed = [cache for cache in model.caches if isinstance(cache, FullCache)]
    return backends.page_tokens(
        model.architecture,
        sm,
        asked=resolved.page_size,
        backend=resolved.attention_backend,
        latent=is_latent(model),
        sparse=is_sparse(model),
        unequal=any(cache.head_dim != cache.head_dim_v for cache in headed),
        one_token_states=one_token_states,
        branches=resolved.speculative_eagle_topk,
    )


def compute_dtype(model: ModelSpec, asked: str, sm: tuple[int, int]) -> Dtype:
    """The type SGLang computes in: the checkpoint's, halved, and float16 before Ampere."""
    names: dict[str, Dtype] = {
        "bfloat16": "bfloat16",
        "float16": "float16",
        "half": "float16",
        "float32": "float32",
        "float": "float32",
    }
    if asked != "auto" and asked not in names:
        raise UsageError(
            f"SGLang has no dtype {shown(asked)}.",
            hint=f"Use auto or one of {', '.join(DTYPE_BYTES)}.",
        )
    if sm < BFLOAT16_SM:
        return "float16"
    if asked == "auto":
        halved: Dtype = "bfloat16" if model.model_type.startswith("gemma") else "float16"
        return halved if model.dtype == "float32" else model.dtype
    return names[asked]


def capability(gpu: GpuSpec) -> tuple[int, int]:
    """Compute capability of the device; a bare amount of memory takes an H100's."""
    if gpu.sm is not None:
        return gpu.sm
    if gpu.vendor in _NO_DEVICE:
        raise EngineRefusesError(
            f"kvplan models SGLang on NVIDIA and AMD GPUs, not on {gpu.id}.",
            hint="Choose another GPU, or another engine.",
        )
    return CUSTOM_SM
