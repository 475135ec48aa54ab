"""From a model's layer caches to vLLM's layer specs: kind, block size, page bytes.

A page is one layer's share of one block: block_size × cell × KV heads of the rank.
Source: vLLM 0.33.0, vllm/v1/kv_cache_interface.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from kvplan.engines.vllm import backends
from kvplan.engines.vllm.history import Rules
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
from kvplan.models.formats import Dtype, KvFormat, ceil_div, plain_kv
from kvplan.models.spec import ModelSpec

Headed = FullCache | WindowCache | ChunkedCache
_HEADED = (FullCache, WindowCache, ChunkedCache)

Kind = Literal["full", "window", "chunked", "latent", "indexer"]
# Kinds that keep every token.
WHOLE: tuple[Kind, ...] = ("full", "latent", "indexer")

# FP8 under sparse MLA on Hopper is stored as 512 fp8 + 16 bytes of scales + 64 bf16 for rope.
SPARSE_FP8_CELL = 656
# vLLM's Cohere2 passes its window plus one to the attention layer
# (vllm/model_executor/models/commandr.py).
WINDOW_EXTRA: Mapping[str, int] = {"Cohere2ForCausalLM": 1}
# Its attention is built without the cache config, so --kv-cache-dtype has no effect
# (vllm/model_executor/models/falcon.py).
IGNORES_KV_DTYPE = frozenset({"FalconForCausalLM"})
# It projects latent vectors to heads before it stores them
# (vllm/model_executor/models/minicpm3.py).
UNPACKS_LATENT = frozenset({"MiniCPM3ForCausalLM"})


@dataclass(frozen=True, slots=True)
class PageSpec:
    """What vLLM knows of one layer's cache. Equal specs share a group.

    Attributes:
        block_size: Tokens a page holds.
        page_bytes: Bytes of a page on one rank.
        span: The window or the chunk in tokens, 0 for kinds that keep everything.
    """

    kind: Kind
    block_size: int
    page_bytes: int
    span: int = 0

    @property
    def family(self) -> str:
        """Specs of one family can form a group with unequal pages."""
        return "full" if self.kind in WHOLE else f"{self.kind} {self.span}"


@dataclass(frozen=True, slots=True)
class PageContext:
    """Everything outside the layer that decides its page.

    Attributes:
        kept_whole: Whether windows and chunks are paged as full attention: there are full layers,
            and the hybrid manager is off.
    """

    kv_dtype: str
    kv: KvFormat
    tp: int
    dcp: int
    sm: tuple[int, int]
    block_size: int | None
    dtype: Dtype
    rules: Rules
    kept_whole: bool


def check_heads(model: ModelSpec, tp: int) -> None:
    """The divisibility that vLLM itself insists on.

    Raises:
        EngineRefusesError: query heads, or KV heads in either direction, don't divide.
    """
    if model.attention_heads % tp:
        raise EngineRefusesError(
            f"vLLM refuses --tp {tp}: {model.attention_heads} attention heads do not divide by it.",
            hint=f"Use --tp {_divisors(model.attention_heads)}.",
        )
    for heads in kv_heads(model):
        if heads % tp and tp % heads:
            raise EngineRefusesError(
                f"vLLM refuses --tp {tp}: it neither divides the {heads} KV heads nor is a "
                "multiple of them.",
                hint=f"Use --tp {_divisors(heads)}.",
            )


def kv_heads(model: ModelSpec) -> set[int]:
    """The numbers of KV heads that the model's layers have; empty for MLA."""
    return {cache.kv_heads for cache in model.caches if isinstance(cache, _HEADED)}


def _divisors(number: int) -> str:
    return " or ".join(str(n) for n in (1, 2, 4, 8, 16) if number % n == 0)


def layer_pages(model: ModelSpec, context: PageContext) -> tuple[tuple[PageSpec, ...], ...]:
    """For each layer in order, the specs of its caches (none for shared or absent ones).

    Raises:
        EngineRefusesError: no backend takes the combination.
        NotModelledError: a kind of cache that this engine model does not cover yet.
    """
    if model.architecture in IGNORES_KV_DTYPE:
        context = replace(context, kv_dtype=context.dtype, kv=plain_kv(context.dtype))
    sparse = any(cache.kind == "indexer" for cache in model.caches)
    extra = WINDOW_EXTRA.get(model.architecture, 0)
    known: dict[int, tuple[PageSpec, ...]] = {}
    for layer in model.layers:
        # Layers are interned, so identity tells equal ones without hashing them.
        if id(layer) not in known:
            known[id(layer)] = tuple(
                _page(_stored(cache, model), context, sparse=sparse, window_extra=extra)
                for cache in layer.caches
                if not isinstance(cache, SharedCache)
            )
    return tuple(known[id(layer)] for layer in model.layers)


def _stored(cache: LayerCache, model: ModelSpec) -> LayerCache:
    if isinstance(cache, LatentCache) and model.architecture in UNPACKS_LATENT:
        return cache.unpacked or cache
    return cache


def _page(cache: LayerCache, context: PageContext, *, sparse: bool, window_extra: int) -> PageSpec:
    if isinstance(cache, LatentCache | IndexerCache):
        backend = backends.latent_backend(context.kv_dtype, context.sm, sparse=sparse)
        block = backends.block_size(backend, context.block_size)
        cell = cache.token_bytes(context.kv, tp=context.tp)
        if sparse and context.sm < (10, 0) and isinstance(cache, LatentCache):
            cell = _hopper_sparse_cell(cell, context)
        return PageSpec(cache.kind, block, block * cell)
    if not isinstance(cache, _HEADED):
        raise NotModelledError(
            f"kvplan does not model vLLM's paging of {cache.kind} caches yet.",
            hint="Full, window, chunked and latent attention are modelled.",
        )
    _check_diffkv(cache, context)
    backend = backends.attention_backend(context.kv_dtype, context.sm)
    block = backends.block_size(backend, context.block_size)
    page = block * _counted(cache, context).token_bytes(context.kv, tp=context.tp)
    match cache:
        case WindowCache():
            return PageSpec("window", block, page, cache.window + window_extra)
        case ChunkedCache():
            return PageSpec("chunked", block, page, cache.chunk)
        case _:
            return PageSpec("full", block, page)


def _hopper_sparse_cell(cell: int, context: PageContext) -> int:
    if context.kv.bits_k == 8:
        return SPARSE_FP8_CELL
    if context.dcp > 1:
        raise EngineRefusesError(
            "vLLM refuses decode context parallelism for sparse MLA with a cache that is not fp8.",
            hint="Use --kv-dtype fp8, or leave out --dcp.",
        )
    return cell


def counts_key_twice(kind: str, rules: Rules, *, kept_whole: bool) -> bool:
    """Whether a release pages a layer of this kind as if its values had the keys' size."""
    return ("kept_whole" if kept_whole and kind != "full" else kind) in rules.key_twice


def _counted(cache: Headed, context: PageContext) -> Headed:
    twice = counts_key_twice(cache.kind, context.rules, kept_whole=context.kept_whole)
    if twice and cache.head_dim != cache.head_dim_v:
        return cache.model_copy(update={"head_dim_v": cache.head_dim})
    return cache


def _check_diffkv(cache: Headed, context: PageContext) -> None:
    unequal = cache.head_dim != cache.head_dim_v
    if unequal and context.kv.bits_k < 16 and context.sm >= (10, 0):
        raise EngineRefusesError(
            f"vLLM has no {context.kv_dtype} backend for unequal key and value sizes here.",
            hint="Use --kv-dtype auto.",
        )


def blocks_held(page: PageSpec, length: int, *, in_flight: int, dcp: int) -> int:
    """Worst-case blocks that one request of ``length`` tokens holds in one group.

    Source: vLLM 0.33.0, max_memory_usage_bytes of each spec class.
    """
    match page.kind:
        case "window":
            kept = min(page.span - 1 + in_flight, length)
            return ceil_div(kept, page.block_size) + 1
        case "chunked":
            return ceil_div(min(page.span + in_flight, length), page.block_size)
        case _:
            return ceil_div(ceil_div(length, dcp), page.block_size)


def still_grows(page: PageSpec, length: int, *, in_flight: int) -> bool:
    """Whether one more token beyond ``length`` can ever need another block of this group."""
    match page.kind:
        case "window":
            return length < page.span - 1 + in_flight
        case "chunked":
            return length < page.span + in_flight
        case _:
            return True
