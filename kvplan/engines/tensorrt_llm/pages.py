"""From a model's layer caches to bytes a token in TensorRT-LLM's pools, by stage and window.

Source: tensorrt_llm/_torch/pyexecutor/resource_manager.py (KVCacheManager); the C++ path has the
same rows (cpp/tensorrt_llm/batch_manager/kvCacheManager.cpp).
"""

from __future__ import annotations

from dataclasses import dataclass

from kvplan.engines.tensorrt_llm.frame import Frame, Stored
from kvplan.errors import EngineRefusesError, NotModelledError
from kvplan.models.caches import (
    ChunkedCache,
    FullCache,
    IndexerCache,
    LatentCache,
    LayerCache,
    SharedCache,
    WindowCache,
)
from kvplan.models.formats import ceil_div
from kvplan.models.spec import Layer, ModelSpec

Headed = FullCache | WindowCache | ChunkedCache
HEADED = (FullCache, WindowCache, ChunkedCache)
Stage = tuple[int, int]
# Keys of the indexer carry an fp32 scale for every 128 elements.
_INDEX_BLOCK, _SCALE_BYTES = 128, 4


@dataclass(frozen=True, slots=True)
class Pool:
    """Layers of one attention window on one stage.

    Attributes:
        window: Tokens that they keep; max_seq_len for all.
        indices: Which layers.
        token_bytes: Bytes of a token in all of them on one rank, scales included.
        estimated_bytes: The same as the engine's estimate has it, which splits KV heads evenly.
        scale_bytes: Of ``token_bytes``, the scales.
        latent: They keep latent vectors.
    """

    window: int
    indices: tuple[int, ...]
    token_bytes: int
    estimated_bytes: int
    scale_bytes: int
    latent: bool


def pipeline_stages(layers: int, stages: int) -> tuple[Stage, ...]:
    """First and one past the last layer of each stage; the first ones get the extra layers.

    Source: tensorrt_llm/mapping.py pp_layers.
    """
    if stages > layers:
        raise EngineRefusesError(
            f"{stages} pipeline stages are more than the model's {layers} layers.",
            hint=f"Use --pp {layers} or fewer.",
        )
    base, extra = divmod(layers, stages)
    found, start = [], 0
    for stage in range(stages):
        stop = start + base + (stage < extra)
        found.append((start, stop))
        start = stop
    return tuple(found)


def pools_of(frame: Frame, stage: Stage) -> tuple[Pool, ...]:
    """The pools of one stage, the narrowest window first.

    Raises:
        NotModelledError: a kind of cache, or a mix of sizes, that kvplan has no pool for.
    """
    layers = frame.setup.model.layers
    caches = {index: _caches(layers, index) for index in range(*stage)}
    _check_sizes([cache for kept in caches.values() for cache in kept])
    windows: dict[int, list[int]] = {}
    for index, kept in caches.items():
        if kept:
            windows.setdefault(_window(frame, index - stage[0], kept), []).append(index)
    return tuple(
        _pool(frame, window, {index: caches[index] for index in indices})
        for window, indices in sorted(windows.items())
    )


def _caches(layers: tuple[Layer, ...], index: int) -> tuple[LayerCache, ...]:
    found: list[LayerCache] = []
    for cache in layers[index].caches:
        found += layers[cache.layer].caches if isinstance(cache, SharedCache) else (cache,)
    other = next(
        (c for c in found if not isinstance(c, (*HEADED, LatentCache, IndexerCache))), None
    )
    if other is not None:
        raise NotModelledError(
            f"kvplan does not model TensorRT-LLM's pool for {other.kind} caches.",
            hint="Plan for vLLM, or measure a start.",
        )
    return tuple(found)


def _check_sizes(caches: list[LayerCache]) -> None:
    headed = [cache for cache in caches if isinstance(cache, HEADED)]
    sizes = {size for cache in headed for size in (cache.head_dim, cache.head_dim_v)}
    indexed = any(isinstance(cache, IndexerCache) for cache in caches)
    if len(sizes) > 1 or (headed and indexed):
        raise NotModelledError(
            "Heads of several sizes need TensorRT-LLM's second cache manager, which kvplan does "
            "not model.",
            hint="Plan for vLLM, or measure a start.",
        )


def _window(frame: Frame, local: int, kept: tuple[LayerCache, ...]) -> int:
    """max_attention_window repeats over the layers of a rank."""
    longest, asked = frame.settings.max_seq_len, frame.settings.max_attention_window
    if asked is not None:
        return min(longest, asked[local % len(asked)])
    spans = [cache.window for cache in kept if isinstance(cache, WindowCache)]
    if spans and frame.rules.derives_windows and _is_mixed(frame.setup.model):
        return min(longest, spans[0])
    return longest


def _is_mixed(model: ModelSpec) -> bool:
    """Whether windows stand beside full layers; alone they are left to the option."""
    return any(isinstance(cache, FullCache) for cache in model.caches)


def _pool(frame: Frame, window: int, kept: dict[int, tuple[LayerCache, ...]]) -> Pool:
    cells = [_cell(cache, frame) for caches in kept.values() for cache in caches]
    latent = any(isinstance(cache, LatentCache) for caches in kept.values() for cache in caches)
    return Pool(
        window=window,
        indices=tuple(kept),
        token_bytes=sum(cell[0] for cell in cells),
        estimated_bytes=sum(cell[1] for cell in cells),
        scale_bytes=sum(cell[2] for cell in cells),
        latent=latent,
    )


def _cell(cache: LayerCache, frame: Frame) -> tuple[int, int, int]:
    """Bytes of a token in one layer: as allocated, as estimated, and of its scales."""
    tp, stored = frame.attention_tp, frame.stored
    match cache:
        case FullCache() | WindowCache() | ChunkedCache():
            width = cache.head_dim + cache.head_dim_v
            held = _bytes(cache.heads_per_rank(tp) * width, stored)
            estimated = _bytes(cache.kv_heads * width // tp, stored)
            return sum(held), sum(estimated), held[1]
        case LatentCache():
            held = _bytes(cache.latent_dim + cache.rope_dim, stored)
            return sum(held), sum(held), held[1]
        case IndexerCache():
            size = cache.head_dim + cache.head_dim // _INDEX_BLOCK * _SCALE_BYTES
            return size, size, 0
        case _:  # _caches lets no other through
            return 0, 0, 0


def _bytes(elements: int, stored: Stored) -> tuple[int, int]:
    """Bytes of elements and of their scales."""
    scales = ceil_div(elements, stored.scale_block) if stored.scale_block else 0
    return ceil_div(elements * stored.bits, 8), scales


def check_heads(model: ModelSpec, tp: int) -> None:
    """The divisibility that the engine insists on.

    Raises:
        EngineRefusesError: query heads, or KV heads in either direction, don't divide.
    """
    wanted = {f"{model.attention_heads} attention heads": model.attention_heads % tp}
    for heads in {cache.kv_heads for cache in model.caches if isinstance(cache, HEADED)}:
        wanted[f"{heads} KV heads"] = heads % tp and tp % heads
    uneven = next((what for what, left in wanted.items() if left), None)
    if uneven is not None:
        divisors = " or ".join(str(n) for n in (1, 2, 4, 8, 16) if model.attention_heads % n == 0)
        raise EngineRefusesError(
            f"TensorRT-LLM refuses --tp {tp}: the {uneven} do not divide by it.",
            hint=f"Use --tp {divisors}.",
        )
