"""What was read of a model: its layers by kind of cache, and its weights by component."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

from kvplan.models.caches import (
    ChunkedCache,
    CompressedCache,
    CompressorCache,
    CrossCache,
    FullCache,
    IndexerCache,
    LatentCache,
    LayerCache,
    RecurrentCache,
    SharedCache,
    WindowCache,
)
from kvplan.models.formats import PLAIN, ceil_div, plain_kv
from kvplan.models.spec import ModelSpec
from kvplan.models.weights import stored_bytes
from kvplan.reports.figures import counted


class CacheRow(NamedTuple):
    """One cache of identical layers; bytes over all of them, at TP 1 in the model's own type."""

    layers: str
    layer_count: int
    kind: str
    shape: str
    bytes_per_token: int
    bytes_per_request: int


class WeightRow(NamedTuple):
    """One component of the weights, as stored."""

    component: str
    parameters: int
    bytes: int


def cache_rows(model: ModelSpec, context: int) -> tuple[CacheRow, ...]:
    """One row a cache of layers with the same caches, in the order in which they first occur."""
    alike: dict[tuple[LayerCache, ...], list[int]] = {}
    for index, layer in enumerate(model.layers):
        alike.setdefault(layer.caches, []).append(index)
    return tuple(
        _cache_row(model, cache, indices, context)
        for caches, indices in alike.items()
        for cache in (caches or (None,))
    )


def _cache_row(
    model: ModelSpec, cache: LayerCache | None, indices: list[int], context: int
) -> CacheRow:
    kv, count = plain_kv(model.dtype), len(indices)
    if cache is None:
        return CacheRow(spans(indices), count, "none", "keeps nothing", 0, 0)
    return CacheRow(
        layers=spans(indices),
        layer_count=count,
        kind=cache.kind,
        shape=_shape(cache),
        bytes_per_token=ceil_div(count * cache.token_bytes(kv, tp=1), _tokens_an_entry(cache)),
        bytes_per_request=count * cache.request_bytes(context, kv, model.dtype, tp=1),
    )


def spans(indices: list[int]) -> str:
    """Ascending numbers as spans, a regular stride as such.

    >>> spans([0, 1, 2, 4, 6, 7]), spans([5, 11, 17, 23])
    ('0–2, 4, 6–7', '5, 11, … 23')
    """
    runs: list[list[int]] = []
    for index in indices:
        if runs and index == runs[-1][-1] + 1:
            runs[-1].append(index)
        else:
            runs.append([index])
    texts = [f"{run[0]}–{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs]
    steps = {(len(run), later[0] - run[0]) for run, later in pairwise(runs)}
    if len(runs) > 3 and len(steps) == 1:
        return f"{texts[0]}, {texts[1]}, … {texts[-1]}"
    return ", ".join(texts)


def _tokens_an_entry(cache: LayerCache) -> int:
    return cache.stride if isinstance(cache, CompressedCache | IndexerCache) else 1


def _shape(cache: LayerCache) -> str:  # noqa: C901, PLR0911 - one a kind
    match cache:
        case FullCache():
            return _heads(cache)
        case WindowCache():
            return f"{_heads(cache)}, last {counted(cache.window, 'token')}"
        case ChunkedCache():
            return f"{_heads(cache)}, chunks of {counted(cache.chunk, 'token')}"
        case CrossCache():
            tokens = cache.source_tokens
            source = "the source's tokens" if tokens is None else counted(tokens, "source token")
            return f"{_heads(cache)}, {source}"
        case LatentCache():
            return f"latent {cache.latent_dim} + rope {cache.rope_dim}"
        case CompressedCache():
            return f"packed latent {cache.latent_dim} + rope {cache.rope_dim}{_reach(cache)}"
        case CompressorCache():
            return f"fp32 vector of {cache.state_dim}, last {counted(cache.window, 'token')}"
        case IndexerCache():
            every = f", one every {cache.stride} tokens" if cache.stride > 1 else ""
            scales = f", a scale each {cache.scale_block}" if cache.scale_block else ""
            return f"{8 * cache.element_bytes}-bit keys of {cache.head_dim}{scales}{every}"
        case RecurrentCache():
            states = (f"{state.name} {_times(state.shape)}" for state in cache.states)
            return ", ".join(states)
        case SharedCache():
            return f"reads layer {cache.layer}"


def _heads(cache: FullCache | WindowCache | ChunkedCache | CrossCache) -> str:
    heads = f"{cache.kv_heads} KV head" + ("" if cache.kv_heads == 1 else "s")
    if cache.head_dim == cache.head_dim_v:
        return f"{heads} of {cache.head_dim}"
    return f"{heads}, K {cache.head_dim}, V {cache.head_dim_v}"


def _reach(cache: CompressedCache) -> str:
    every = f", one every {cache.stride} tokens" if cache.stride > 1 else ""
    last = f", last {counted(cache.window, 'token')}" if cache.window else ""
    return every + last


def _times(shape: tuple[int, ...]) -> str:
    return " × ".join(str(size) for size in shape)


def weight_rows(model: ModelSpec) -> tuple[WeightRow, ...]:
    """One row a component, the largest first."""
    parameters: dict[str, int] = {}
    for weight in model.weights:
        parameters[weight.component] = parameters.get(weight.component, 0) + weight.parameters
    sizes = stored_bytes(model.weights, PLAIN[model.dtype])
    rows = [WeightRow(name, parameters[name], size) for name, size in sizes.items()]
    return tuple(sorted(rows, key=lambda row: -row.bytes))
