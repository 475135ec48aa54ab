"""What the layers of a group keep in one block, counted from the shapes of real tensors.

This is the second opinion on a page's bytes: shapes as vLLM gives them to its kernels
(get_kv_cache_shape of the backends, vllm 0.33.0), not the arithmetic of the plan.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from kvplan.measure.job import Job
from kvplan.measure.store import DTYPES
from kvplan.models.caches import (
    ChunkedCache,
    CrossCache,
    FullCache,
    IndexerCache,
    LatentCache,
    LayerCache,
    RecurrentCache,
    WindowCache,
)
from kvplan.models.formats import ceil_div, plain_kv
from kvplan.plan import CacheGroup

_HEADED = (FullCache, WindowCache, ChunkedCache, CrossCache)


def page_tensors(cache: LayerCache, group: CacheGroup, job: Job, blocks: int) -> tuple[Any, ...]:
    """The tensors that one layer reads of ``blocks`` blocks, in the model's own type, on meta."""
    return tuple(
        torch.empty((blocks, *shape), dtype=dtype, device="meta")
        for shape, dtype in _shapes(cache, group, job)
    )


def _shapes(
    cache: LayerCache, group: CacheGroup, job: Job
) -> Iterator[tuple[tuple[int, ...], Any]]:
    size, tp = group.block_size, job.layout.tp
    if isinstance(cache, _HEADED):
        heads = cache.heads_per_rank(tp)
        yield (size, heads, cache.head_dim), DTYPES[job.dtype]
        yield (size, heads, cache.head_dim_v), DTYPES[job.dtype]
    elif isinstance(cache, LatentCache):
        yield (size, cache.latent_dim + cache.rope_dim), DTYPES[job.dtype]
    elif isinstance(cache, IndexerCache):
        yield (size, cache.token_bytes(plain_kv(job.dtype), tp=tp)), torch.uint8
    elif isinstance(cache, RecurrentCache):
        for state in cache.states:
            shape = list(state.shape)
            if state.split is not None:
                shape[state.split] = ceil_div(shape[state.split], tp)
            yield tuple(shape), DTYPES[state.dtype or job.dtype]
