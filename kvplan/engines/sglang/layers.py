"""From a model's layer caches to bytes in SGLang's pools, by pipeline stage.

SGLang gives every layer of one pool the same row, so that layers that keep nothing of their own
(shared caches, skipped attention) take a row as well. Beside recurrent states only attention
layers do. Source: SGLang 0.5.23, sglang/srt/model_executor/pool_configurator.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from kvplan.engines.sglang import pools, states
from kvplan.engines.sglang.kv_dtypes import Stored
from kvplan.errors import EngineRefusesError, NotModelledError
from kvplan.models.caches import (
    ChunkedCache,
    FullCache,
    IndexerCache,
    LatentCache,
    LayerCache,
    RecurrentCache,
    SharedCache,
    WindowCache,
)
from kvplan.models.formats import Dtype
from kvplan.models.spec import Layer, ModelSpec

Headed = FullCache | WindowCache | ChunkedCache
HEADED = (FullCache, WindowCache, ChunkedCache)
LOCAL = (WindowCache, ChunkedCache)
Stage = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Part:
    """Layers of one kind on one stage: which they are, and bytes of one of them.

    Attributes:
        each: Bytes of a token in one layer; of a recurrent state, of a slot in all of them.
    """

    indices: tuple[int, ...] = ()
    each: int = 0

    @property
    def token_bytes(self) -> int:
        """Bytes of a token in all layers of the part."""
        return self.each * len(self.indices)


@dataclass(frozen=True, slots=True)
class Rows:
    """What one rank of a stage keeps of a token, and of a request.

    Attributes:
        full: Layers in the pool of all tokens.
        index: Their indexer keys.
        window: Layers in the pool of windows.
        slot_bytes: Bytes of a slot of recurrent states.
        recurrent: Layers with such a state.
        latent: The full layers keep a latent vector.
    """

    full: Part = field(default_factory=Part)
    index: Part = field(default_factory=Part)
    window: Part = field(default_factory=Part)
    slot_bytes: int = 0
    recurrent: tuple[int, ...] = ()
    latent: bool = False

    @property
    def full_bytes(self) -> int:
        """Bytes of a token in the pool of all tokens."""
        return self.full.token_bytes + self.index.token_bytes


@dataclass(frozen=True, slots=True)
class RowContext:
    """What decides the rows beside the layers.

    Attributes:
        tp: Ranks that split attention.
        split: Windows have a pool of their own.
        raw: Sparse attention stores fp8 rows without scales.
    """

    stored: Stored
    tp: int
    split: bool
    raw: bool
    ssm_dtype: Dtype | None


def pipeline_stages(layers: int, stages: int) -> tuple[Stage, ...]:
    """First and one past the last layer of each stage; the last stages get the extra ones.

    Source: SGLang 0.5.23, sglang/srt/distributed/utils.py get_pp_indices.
    """
    if stages > layers:
        raise EngineRefusesError(
            f"{stages} pipeline stages are more than the model's {layers} layers.",
            hint=f"Use --pp {layers} or fewer.",
        )
    base, extra = divmod(layers, stages)
    ends = [0]
    for stage in range(stages):
        ends.append(ends[-1] + base + (stage >= stages - extra))
    return tuple(pairwise(ends))


def rows_by_stage(
    model: ModelSpec, stages: Sequence[Stage], context: RowContext
) -> tuple[Rows, ...]:
    """The rows of each stage.

    Raises:
        NotModelledError: a kind of cache that kvplan has no pool of SGLang's for.
        EngineRefusesError: tensor parallelism does not divide a state.
    """
    hybrid = any(isinstance(cache, RecurrentCache) for cache in model.caches)
    kept = [_caches(model.layers, index) for index in range(len(model.layers))]
    if not hybrid:
        kept = _filled(kept)
    sizes = {cache: _row(cache, context) for caches in kept for cache in caches}
    return tuple(_rows(kept, stage, sizes, context) for stage in stages)


def _caches(layers: Sequence[Layer], index: int) -> tuple[LayerCache, ...]:
    """A layer's caches, those of the layer it reads in place of a shared one."""
    found: list[LayerCache] = []
    for cache in layers[index].caches:
        found += layers[cache.layer].caches if isinstance(cache, SharedCache) else (cache,)
    return tuple(found)


def _filled(kept: list[tuple[LayerCache, ...]]) -> list[tuple[LayerCache, ...]]:
    """Layers without a cache take the row of the others."""
    common = next((caches for caches in kept if caches), ())
    return [caches or common for caches in kept]


def _row(cache: LayerCache, context: RowContext) -> int:
    stored = context.stored
    match cache:
        case FullCache() | WindowCache() | ChunkedCache():
            heads = cache.heads_per_rank(context.tp)
            return pools.headed_bytes(heads, cache.head_dim, cache.head_dim_v, stored)
        case LatentCache():
            return pools.sparse_latent_bytes(
                cache.latent_dim, cache.rope_dim, stored, raw=context.raw
            )
        case IndexerCache():
            return pools.index_bytes(cache.head_dim)
        case RecurrentCache():
            return states.slot_bytes((cache,), tp=context.tp, ssm_dtype=context.ssm_dtype)
        case _:
            raise NotModelledError(
                f"kvplan does not model SGLang's pool for {cache.kind} caches.",
                hint="Plan for vLLM, or measure a start.",
            )


def _rows(
    kept: Sequence[tuple[LayerCache, ...]],
    stage: Stage,
    sizes: dict[LayerCache, int],
    context: RowContext,
) -> Rows:
    held = [(index, cache) for index in range(*stage) for cache in kept[index]]
    local = [(i, c) for i, c in held if context.split and isinstance(c, LOCAL)]
    full = [
        (i, c)
        for i, c in held
        if isinstance(c, LatentCache) or (isinstance(c, HEADED) and (i, c) not in local)
    ]
    states_kept = [(i, c) for i, c in held if isinstance(c, RecurrentCache)]
    return Rows(
        full=_part(full, sizes),
        index=_part([(i, c) for i, c in held if isinstance(c, IndexerCache)], sizes),
        window=_part(local, sizes),
        slot_bytes=sum(sizes[cache] for _, cache in states_kept),
        recurrent=tuple(index for index, _ in states_kept),
        latent=any(isinstance(cache, LatentCache) for _, cache in full),
    )


def _part(held: Sequence[tuple[int, LayerCache]], sizes: dict[LayerCache, int]) -> Part:
    distinct = {sizes[cache] for _, cache in held}
    if len(distinct) > 1:
        raise NotModelledError(
            "SGLang's pool has one row for all its layers, and these differ in heads or sizes.",
            hint="Plan for vLLM.",
        )
    return Part(tuple(index for index, _ in held), distinct.pop() if distinct else 0)


def window_tokens(model: ModelSpec) -> int:
    """Tokens that a window layer looks back; the largest where they differ."""
    spans = [c.window if isinstance(c, WindowCache) else c.chunk for c in _local(model)]
    return max(spans, default=0)


def _local(model: ModelSpec) -> list[WindowCache | ChunkedCache]:
    return [cache for cache in model.caches if isinstance(cache, LOCAL)]


def check_heads(model: ModelSpec, tp: int, *, groups: int = 1) -> None:
    """The divisibility that SGLang's classes insist on.

    Raises:
        EngineRefusesError: query heads, or KV heads in either direction, don't divide.
    """
    wanted = {f"{model.attention_heads} attention heads": model.attention_heads % tp}
    for heads in {cache.kv_heads for cache in model.caches if isinstance(cache, HEADED)}:
        wanted[f"{heads} KV heads"] = heads % tp and tp % heads
    uneven = next((what for what, left in wanted.items() if left), None)
    if uneven is not None:
        of_groups = f" in {groups} groups" if groups > 1 else ""
        raise EngineRefusesError(
            f"SGLang refuses --tp {tp * groups}{of_groups}: the {uneven} do not divide by {tp}.",
            hint=f"Use --tp {_divisors(model.attention_heads)}.",
        )


def _divisors(number: int) -> str:
    return " or ".join(str(n) for n in (1, 2, 4, 8, 16) if number % n == 0)
