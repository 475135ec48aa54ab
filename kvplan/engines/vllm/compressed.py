"""Pages of DeepSeek-V4's compressed caches: its kernels prescribe blocks and cells.

Source: vLLM 0.33.0, vllm/models/deepseek_v4/: attention.py, compressor.py, indexer.py.
"""

from __future__ import annotations

from collections.abc import Sequence

from kvplan.engines.vllm.backends import COMPRESSED
from kvplan.engines.vllm.cells import CellContext
from kvplan.engines.vllm.kv_dtypes import FP8_NAMES
from kvplan.engines.vllm.pages import Kind, PageSpec
from kvplan.errors import EngineRefusesError, NotModelledError
from kvplan.models.caches import CompressedCache, CompressorCache, IndexerCache, LayerCache
from kvplan.models.formats import round_up
from kvplan.models.spec import Layer

# Pages start at multiples of this many bytes.
_ALIGNMENT = 576
_WINDOW_BLOCK = 64
# Tokens a block of a compressor's state, by its window: chosen so that its page is as large as
# that of the cache beside it (compressor.py, CompressorStateCache).
_STATE_BLOCKS = {8: 4, 128: 8}
_TYPES = ("auto", "fp8_ds_mla", *FP8_NAMES)


def layer_pages(
    layers: Sequence[Layer], context: CellContext, *, asked_block: int | None
) -> tuple[tuple[PageSpec, ...], ...]:
    """For each layer in order, the specs of its caches.

    Raises:
        EngineRefusesError: a cache type or a block size that the kernels do not take.
        NotModelledError: a compression that vLLM's class does not know.
    """
    if context.kv_dtype not in (*_TYPES, context.dtype):
        raise EngineRefusesError(
            f"vLLM has no {context.kv_dtype} cache for this model.", hint="Leave --kv-dtype out."
        )
    if asked_block is not None and asked_block % COMPRESSED.base:
        raise EngineRefusesError(
            f"{COMPRESSED.name} takes blocks of {COMPRESSED.base} tokens, not {asked_block}.",
            hint="Leave block_size out.",
        )
    known: dict[int, tuple[PageSpec, ...]] = {}
    for layer in layers:
        if id(layer) not in known:
            known[id(layer)] = tuple(_page(cache, context) for cache in layer.caches)
    return tuple(known[id(layer)] for layer in layers)


def _page(cache: LayerCache, context: CellContext) -> PageSpec:
    cell = cache.token_bytes(context.kv, tp=context.tp)
    match cache:
        case CompressedCache() if cache.window is not None:
            return _aligned("latent_window", _WINDOW_BLOCK, _WINDOW_BLOCK * cell, cache.window)
        case CompressedCache():
            return _aligned("latent", COMPRESSED.base, COMPRESSED.base // cache.stride * cell)
        case IndexerCache():
            return _aligned("indexer", COMPRESSED.base, COMPRESSED.base // cache.stride * cell)
        case CompressorCache() if cache.window in _STATE_BLOCKS:
            tokens = _STATE_BLOCKS[cache.window]
            return _aligned("latent_window", tokens, tokens * cell, cache.window)
        case _:
            raise NotModelledError(
                f"vLLM has no compressed attention with {cache.kind} caches like this one."
            )


def _aligned(kind: Kind, tokens: int, used: int, window: int = 0) -> PageSpec:
    page = round_up(used, _ALIGNMENT)
    return PageSpec(kind, tokens, page, window, padding=page - used)
