"""What one layer's cache takes a token in vLLM, and which backend serves it.

Source: vLLM 0.33.0, get_kv_cache_spec of each attention layer, and customize_spec of the backends.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kvplan.engines.vllm import backends
from kvplan.engines.vllm.backends import Backend
from kvplan.engines.vllm.kv_dtypes import NVFP4_NAMES, SPARSE_CELLS, TURBOQUANT
from kvplan.engines.vllm.pages import Kind, Sides
from kvplan.errors import EngineRefusesError, NotModelledError
from kvplan.models.caches import (
    ChunkedCache,
    CrossCache,
    FullCache,
    IndexerCache,
    LatentCache,
    LayerCache,
    WindowCache,
)
from kvplan.models.formats import Dtype, KvFormat, plain_kv
from kvplan.models.spec import ModelSpec

Headed = FullCache | WindowCache | ChunkedCache | CrossCache
HEADED = (FullCache, WindowCache, ChunkedCache, CrossCache)
Tokenwise = Headed | LatentCache | IndexerCache
TOKENWISE = (*HEADED, LatentCache, IndexerCache)

# vLLM's Cohere2 passes its window plus one to the attention layer
# (vllm/model_executor/models/commandr.py).
_WINDOW_EXTRA: Mapping[str, int] = {"Cohere2ForCausalLM": 1}
# Its attention is built without the cache config, so --kv-cache-dtype has no effect
# (vllm/model_executor/models/falcon.py).
_IGNORES_KV_DTYPE = frozenset({"FalconForCausalLM"})
# It projects latent vectors to heads before it stores them
# (vllm/model_executor/models/minicpm3.py).
_UNPACKS_LATENT = frozenset({"MiniCPM3ForCausalLM"})


@dataclass(frozen=True, slots=True)
class CellContext:
    """What decides a cell beside the layer.

    Attributes:
        kv_dtype, kv: The cache type in force, and its format.
        encoder_tokens: Tokens of an encoder's output that a request may have; None: as many as
            the model's encoder takes.
        sparse: The model's latent caches are read through an indexer.
    """

    architecture: str
    kv_dtype: str
    kv: KvFormat
    dtype: Dtype
    tp: int
    dcp: int
    sm: tuple[int, int]
    grouped: bool
    encoder_tokens: int | None
    sparse: bool
    intel: bool = False


@dataclass(frozen=True, slots=True)
class Cell:
    """One layer's cache before it is cut into blocks.

    Attributes:
        token_bytes: Bytes of a token on one rank.
        unpacked_bytes: The same as the element's type alone says, without a backend's packing.
        span: As in `kvplan.engines.vllm.pages.PageSpec`.
    """

    kind: Kind
    backend: Backend
    token_bytes: int
    unpacked_bytes: int
    span: int = 0
    sides: Sides | None = None


def stored(cache: LayerCache, architecture: str) -> LayerCache:
    """The cache as vLLM's class for the architecture keeps it."""
    if isinstance(cache, LatentCache) and architecture in _UNPACKS_LATENT:
        return cache.unpacked or cache
    return cache


def ignores_kv_dtype(model: ModelSpec) -> bool:
    """Whether vLLM's class for the model keeps its cache in the model's type whatever is asked."""
    return model.architecture in _IGNORES_KV_DTYPE


def cell_of(cache: Tokenwise, context: CellContext, *, skipped: bool) -> Cell:
    """What a token takes.

    Args:
        cache: The layer's cache.
        context: What decides beside it.
        skipped: The layer is left out of the cache's quantization.

    Raises:
        EngineRefusesError: no backend of the device takes the combination.
    """
    kv_dtype = context.dtype if skipped else context.kv_dtype
    kv = plain_kv(context.dtype) if skipped else context.kv
    if isinstance(cache, LatentCache | IndexerCache):
        return _latent(cache, context, kv_dtype, kv)
    return _headed(cache, context, kv_dtype, kv)


def _latent(
    cache: LatentCache | IndexerCache, context: CellContext, kv_dtype: str, kv: KvFormat
) -> Cell:
    backend = backends.latent_backend(kv_dtype, context.sm, sparse=context.sparse)
    size = cache.token_bytes(kv, tp=context.tp)
    if context.sparse and isinstance(cache, LatentCache):
        size = _sparse_cell(size, kv_dtype, kv, context)
    return Cell(cache.kind, backend, size, size)


def _sparse_cell(size: int, kv_dtype: str, kv: KvFormat, context: CellContext) -> int:
    if kv_dtype in SPARSE_CELLS:
        return SPARSE_CELLS[kv_dtype]
    if context.sm >= backends.BLACKWELL:
        return size
    if kv.bits_k == 8:
        return SPARSE_CELLS["fp8_ds_mla"]
    if context.dcp > 1:
        raise EngineRefusesError(
            "vLLM refuses decode context parallelism for sparse MLA with a cache that is not fp8.",
            hint="Use --kv-dtype fp8, or leave out --dcp.",
        )
    return size


def _headed(cache: Headed, context: CellContext, kv_dtype: str, kv: KvFormat) -> Cell:
    _check_unequal(cache, context, kv_dtype, kv)
    if kv_dtype in TURBOQUANT:
        backends.check_turboquant(cache.kind)
    if isinstance(cache, CrossCache) and kv_dtype in NVFP4_NAMES:
        raise EngineRefusesError(
            f"vLLM has no {kv_dtype} backend for cross attention.",
            hint="Use --kv-dtype auto or fp8.",
        )
    backend = backends.attention_backend(
        kv_dtype, context.sm, head_dim=cache.head_dim, grouped=context.grouped, intel=context.intel
    )
    size = cache.token_bytes(kv, tp=context.tp)
    heads = cache.heads_per_rank(context.tp)
    keys = heads * kv.cell_bytes(cache.head_dim, 0)
    element = max(1, kv.bits_k // 8)
    return Cell(
        kind=cache.kind,
        backend=backend,
        token_bytes=size,
        unpacked_bytes=heads * (cache.head_dim + cache.head_dim_v) * element,
        span=_span(cache, context),
        sides=Sides(heads, keys, size - keys),
    )


def _span(cache: Headed, context: CellContext) -> int:
    match cache:
        case WindowCache():
            return cache.window + _WINDOW_EXTRA.get(context.architecture, 0)
        case ChunkedCache():
            return cache.chunk
        case CrossCache():
            return _encoder_tokens(cache, context)
        case _:
            return 0


def _encoder_tokens(cache: CrossCache, context: CellContext) -> int:
    tokens = context.encoder_tokens or cache.source_tokens
    if tokens is None:
        raise NotModelledError(
            "How many tokens of the encoder this release of vLLM plans for is not known.",
            hint="Use vLLM 0.11 or later.",
        )
    return tokens


def _check_unequal(cache: Headed, context: CellContext, kv_dtype: str, kv: KvFormat) -> None:
    if cache.head_dim == cache.head_dim_v:
        return
    if kv_dtype in NVFP4_NAMES or (kv.bits_k < 16 and context.sm >= backends.BLACKWELL):
        raise EngineRefusesError(
            f"vLLM has no {kv_dtype} backend for unequal key and value sizes here.",
            hint="Use --kv-dtype auto.",
        )
