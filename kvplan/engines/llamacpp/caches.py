"""What each layer allocates: keys and values by the cell, states by the sequence.

Source: ggml-org/llama.cpp@0c1e57098 src/llama-kv-cache.cpp, src/llama-kv-cache-dsa.cpp,
src/llama-memory-recurrent.cpp and src/llama-context.cpp (what is refused).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from kvplan.engines.llamacpp.context import Context
from kvplan.engines.llamacpp.families import keeps_windows, rolls_back
from kvplan.errors import EngineRefusesError, NotModelledError
from kvplan.models.caches import (
    ChunkedCache,
    FullCache,
    IndexerCache,
    LatentCache,
    LayerCache,
    RecurrentCache,
    WindowCache,
)
from kvplan.models.ggml_types import GGML_TYPES
from kvplan.models.spec import ModelSpec

Kind = Literal["full", "window", "chunked", "latent", "indexer", "recurrent"]
_STATE_BYTES = 4  # float32, whatever the types of the cache
_STATE_INPUTS = ("conv", "conv groups", "shift")


@dataclass(frozen=True, slots=True)
class Types:
    """Types of the cache, by ggml's names, and whether attention is computed in one go."""

    k: str
    v: str
    flash_attn: bool


@dataclass(frozen=True, slots=True)
class LayerStore:
    """What one layer keeps.

    Attributes:
        layer: Its index.
        k_row, v_row: Bytes of a cell.
        window: Tokens that are attended to; None: all.
        inputs, state: Bytes that a sequence takes whatever its length: what a convolution still
            needs, and the state itself.
    """

    kind: Kind
    layer: int
    k_row: int = 0
    v_row: int = 0
    window: int | None = None
    inputs: int = 0
    state: int = 0

    def cells(self, context: Context, *, swa_full: bool) -> int:
        """Cells of one stream; 0 where nothing is kept by the cell."""
        if self.kind == "recurrent":
            return 0
        if self.window is None or swa_full:
            return context.n_ctx_seq
        return context.window_cells(self.window)

    def bytes(self, context: Context, *, swa_full: bool) -> int:
        """Bytes over all streams and sequences."""
        cells = self.cells(context, swa_full=swa_full) * context.streams
        return cells * (self.k_row + self.v_row) + context.sequences * (self.inputs + self.state)


@dataclass(frozen=True, slots=True)
class Stored:
    """The stores of several layers, added up: the same bytes without going through each layer.

    Attributes:
        rows: For each size of window its first store, and bytes of a cell over all such layers.
        states: Bytes that a sequence takes whatever its length.
    """

    rows: tuple[tuple[LayerStore, int], ...]
    states: int

    def bytes(self, context: Context, *, swa_full: bool) -> int:
        """Bytes over all streams and sequences."""
        rows = sum(
            first.cells(context, swa_full=swa_full) * row_bytes for first, row_bytes in self.rows
        )
        return rows * context.streams + context.sequences * self.states


NOTHING = Stored((), 0)


def stored(stores: Sequence[LayerStore]) -> Stored:
    """Adds up stores."""
    return stored_by(stores, [0] * len(stores)).get(0, NOTHING)


def stored_by(stores: Iterable[LayerStore], homes: Iterable[int]) -> dict[int, Stored]:
    """Adds up stores by the device that each is on."""
    firsts: dict[tuple[int, bool, int | None], LayerStore] = {}
    rows: dict[tuple[int, bool, int | None], int] = {}
    states: dict[int, int] = {}
    for store, home in zip(stores, homes, strict=True):
        size = (home, store.kind == "recurrent", store.window)
        rows[size] = rows.get(size, 0) + store.k_row + store.v_row
        if size not in firsts:
            firsts[size] = store
        states[home] = states.get(home, 0) + store.inputs + store.state
    return {
        home: Stored(tuple((firsts[size], rows[size]) for size in firsts if size[0] == home), state)
        for home, state in states.items()
    }


def layer_stores(spec: ModelSpec, types: Types, *, rollback: int = 0) -> tuple[LayerStore, ...]:
    """What all layers keep, in order.

    Args:
        spec: The model.
        types: Types of the cache.
        rollback: Further copies of each recurrent state (``n_rs_seq``), where the architecture
            has any.

    Raises:
        EngineRefusesError: types that llama.cpp does not accept for this model.
        NotModelledError: a cache that llama.cpp does not have.
    """
    _check_types(spec, types)
    copies = 1 + (rollback if rolls_back(spec) else 0)
    widest = max((_value_width(cache) for cache in spec.caches), default=0)
    hybrid = any(isinstance(cache, RecurrentCache) for cache in spec.caches)
    found: list[LayerStore] = []
    for index, layer in enumerate(spec.layers):
        for cache in layer.caches:
            found += _stored(spec, cache, index, types, widest=widest, copies=copies)
        if not (layer.caches or hybrid or types.flash_attn):
            # A layer without attention still has values as wide as the widest.
            found.append(LayerStore("full", index, v_row=_row(types.v, widest)))
    return tuple(found)


def _stored(
    spec: ModelSpec, cache: LayerCache, index: int, types: Types, *, widest: int, copies: int
) -> Iterator[LayerStore]:
    match cache:
        case FullCache() | WindowCache() | ChunkedCache():
            width = _value_width(cache) if types.flash_attn else widest
            yield LayerStore(
                kind=cache.kind if _window(spec, cache) else "full",
                layer=index,
                k_row=_row(types.k, cache.kv_heads * cache.head_dim),
                v_row=_row(types.v, width),
                window=_window(spec, cache),
            )
        case LatentCache():
            width = cache.latent_dim + cache.rope_dim
            yield LayerStore("latent", index, k_row=_row(types.k, width))
        case IndexerCache():
            yield LayerStore("indexer", index, k_row=_row(types.k, cache.head_dim))
        case RecurrentCache():
            inputs, state = _state(cache)
            yield LayerStore("recurrent", index, inputs=copies * inputs, state=copies * state)
        case _ if cache.kind != "shared":
            raise NotModelledError(
                f"kvplan does not size a {cache.kind} cache under llama.cpp.",
                hint="Choose another engine.",
            )


def _window(spec: ModelSpec, cache: LayerCache) -> int | None:
    if not keeps_windows(spec):
        return None
    if isinstance(cache, WindowCache):
        return cache.window
    return cache.chunk if isinstance(cache, ChunkedCache) else None


def _value_width(cache: LayerCache) -> int:
    if isinstance(cache, FullCache | WindowCache | ChunkedCache):
        return cache.kv_heads * cache.head_dim_v
    return 0


def _state(cache: RecurrentCache) -> tuple[int, int]:
    inputs = state = 0
    for tensor in cache.states:
        size = math.prod(tensor.shape) * _STATE_BYTES
        if tensor.name in _STATE_INPUTS:
            inputs += size
        else:
            state += size
    return inputs, state


def _row(name: str, width: int) -> int:
    """Bytes of a row of so many elements.

    Raises:
        EngineRefusesError: the row is not a whole number of blocks.
    """
    kind = GGML_TYPES[name]
    if width % kind.block:
        raise EngineRefusesError(
            f"A cell of {width:,} elements is no whole number of {name} blocks of {kind.block}.",
            hint="Use f16 for the cache.",
        )
    return kind.tensor_bytes(width)


def _check_types(spec: ModelSpec, types: Types) -> None:
    """What ``llama_init_from_model`` refuses, in its order."""
    latent = any(isinstance(cache, LatentCache) for cache in spec.caches)
    if latent and types.k != types.v:
        raise EngineRefusesError(
            f"llama.cpp refuses different types for K ({types.k}) and V ({types.v}) with latent "
            "attention, which keeps one vector for both.",
            hint=f"Use -o cache_type_k={types.k} -o cache_type_v={types.k}.",
        )
    if GGML_TYPES[types.v].block > 1 and not types.flash_attn:
        raise EngineRefusesError(
            f"llama.cpp refuses a V cache in {types.v} without flash attention.",
            hint="Use -o flash_attn=on, or -o cache_type_v=f16.",
        )
    if types.flash_attn:
        for cache in spec.caches:
            _check_heads(cache, types)


def _check_heads(cache: LayerCache, types: Types) -> None:
    if not isinstance(cache, FullCache | WindowCache | ChunkedCache | LatentCache):
        return
    sizes: tuple[tuple[str, str, int], ...]
    if isinstance(cache, LatentCache):
        sizes = (("K", types.k, cache.latent_dim + cache.rope_dim),)
    else:
        sizes = (("K", types.k, cache.head_dim), ("V", types.v, cache.head_dim_v))
    for half, name, size in sizes:
        block = GGML_TYPES[name].block
        if size % block:
            raise EngineRefusesError(
                f"llama.cpp refuses a {half} cache in {name}: its blocks of {block} do not divide "
                f"heads of {size}.",
                hint=f"Use -o cache_type_{half.lower()}=f16.",
            )
