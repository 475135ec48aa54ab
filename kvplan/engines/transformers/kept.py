"""What the layers of a model keep under transformers, as tensors of one shape each.

Sources: transformers 5.24.0, src/transformers/cache_utils.py and the modeling file of each class.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from kvplan.engines.transformers.history import Rules
from kvplan.engines.transformers.latents import expanded
from kvplan.errors import NotModelledError
from kvplan.models.caches import (
    ChunkedCache,
    CrossCache,
    FullCache,
    IndexerCache,
    LatentCache,
    LayerCache,
    RecurrentCache,
    SharedCache,
    StateTensor,
    WindowCache,
)
from kvplan.models.formats import DTYPE_BYTES, Dtype
from kvplan.models.spec import ModelSpec

# modeling_falcon.py: keys and values are broadcast to all query heads before they are cached.
_REPEATS_HEADS = frozenset({"FalconForCausalLM"})
# modeling_minimax.py: MiniMaxCache keeps its sums in the model's own type.
OWN_CACHE = frozenset({"MiniMaxForCausalLM", "MiniMaxText01ForCausalLM"})
# A convolution's state has a column more than its taps need (conv_kernel_size columns), and
# selective scans and delta rules return their states in float32.
_CONVOLUTIONS = ("conv", "conv groups")
_SINGLE = ("ssm", "recurrent")
_FP32 = 4


@dataclass(frozen=True, slots=True)
class Rows:
    """Keys and values that grow by a row a token.

    Attributes:
        heads: On one rank.
        key_dim, value_dim: Elements of a head's key and value; either may be absent (0).
        window: The layer attends to so many tokens only; None: to all.
        source: Tokens of an encoder's output, whatever is generated; 0: as many as the prompt has;
            None: a decoder's layer.
    """

    heads: int
    key_dim: int
    value_dim: int
    window: int | None = None
    source: int | None = None

    @property
    def elements(self) -> int:
        """Elements of one token of one sequence."""
        return self.heads * (self.key_dim + self.value_dim)


@dataclass(frozen=True, slots=True)
class Kept:
    """Tensors that several layers have alike.

    Attributes:
        kind: What they are, as the model's caches call it.
        rows: Keys and values; None for a state of fixed size.
        state_bytes: Bytes of such a state of one sequence.
        layers: The layers that have them.
    """

    kind: str
    rows: Rows | None
    state_bytes: int
    layers: tuple[int, ...]


def kept_of(
    model: ModelSpec, rules: Rules, dtype: Dtype, *, tp: int, encoder_len: int | None
) -> tuple[Kept, ...]:
    """The tensors of all layers, those that are alike together.

    Args:
        model: What is cached.
        rules: Those of the release.
        dtype: The type the model runs in.
        tp: Ranks that share the heads.
        encoder_len: Tokens of the encoder's output; None: the most that the encoder takes.

    Raises:
        NotModelledError: a cache that transformers keeps in a way kvplan does not know.
    """
    found: dict[tuple[str, Rows | None, int], list[int]] = {}
    for index, layer in enumerate(model.layers):
        for cache in layer.caches:
            for kept in _kept(model, rules, dtype, cache):
                found.setdefault((kept.kind, kept.rows, kept.state_bytes), []).append(index)
    return tuple(
        Kept(kind, _placed(rows, tp, encoder_len), state, tuple(layers))
        for (kind, rows, state), layers in found.items()
    )


def _placed(rows: Rows | None, tp: int, encoder_len: int | None) -> Rows | None:
    """The rows on one rank, for the encoder's output that was asked for."""
    if rows is None:
        return None
    heads = rows.heads // tp if rows.heads > 1 else rows.heads
    if rows.source is None:
        return replace(rows, heads=heads)
    return replace(rows, heads=heads, source=encoder_len or rows.source)


def _kept(model: ModelSpec, rules: Rules, dtype: Dtype, cache: LayerCache) -> Iterator[Kept]:
    match cache:
        case SharedCache():
            return
        case RecurrentCache():
            yield _states(model, rules, dtype, cache)
        case IndexerCache():
            yield from _indexer(rules, cache)
        case LatentCache():
            yield Kept(cache.kind, _latent(model, rules, cache), 0, ())
        case FullCache() | WindowCache() | ChunkedCache() | CrossCache():
            yield Kept(cache.kind, _attention(model, cache), 0, ())
        case _:
            raise _unknown(model, f"a {cache.kind} cache")


def _attention(
    model: ModelSpec, cache: FullCache | WindowCache | ChunkedCache | CrossCache
) -> Rows:
    repeats = model.architecture in _REPEATS_HEADS and cache.kv_heads > 1
    rows = Rows(
        heads=model.attention_heads if repeats else cache.kv_heads,
        key_dim=cache.head_dim,
        value_dim=cache.head_dim_v,
    )
    match cache:
        case WindowCache():
            return replace(rows, window=cache.window)
        case ChunkedCache():
            return replace(rows, window=cache.chunk)
        case CrossCache():
            return replace(rows, source=cache.source_tokens or 0)
        case _:
            return rows


def _latent(model: ModelSpec, rules: Rules, cache: LatentCache) -> Rows:
    if rules.latents:
        return Rows(heads=1, key_dim=cache.latent_dim, value_dim=cache.rope_dim)
    heads, key_dim, value_dim = expanded(model, cache)
    return Rows(heads=heads, key_dim=key_dim, value_dim=value_dim)


def _indexer(rules: Rules, cache: IndexerCache) -> Iterator[Kept]:
    """Keys of the indexer, in the model's own type and without scales."""
    if cache.stride != 1:
        raise NotModelledError("kvplan does not model strided indexer keys under transformers.")
    if rules.indexer:
        yield Kept(cache.kind, Rows(heads=1, key_dim=cache.head_dim, value_dim=0), 0, ())


def _states(model: ModelSpec, rules: Rules, dtype: Dtype, cache: RecurrentCache) -> Kept:
    if not rules.state_layers and model.architecture not in OWN_CACHE:
        raise NotModelledError(
            f"kvplan does not model the states of {model.architecture} in this release of "
            "transformers.",
            hint="Plan for 5.5 or later, where they are layers of the common cache.",
        )
    size = sum(_state_bytes(model, dtype, state) for state in cache.states)
    return Kept(cache.kind, None, size, ())


def _state_bytes(model: ModelSpec, dtype: Dtype, state: StateTensor) -> int:
    if state.name in _CONVOLUTIONS:
        *outer, columns = state.shape
        return math.prod(outer) * (columns + 1) * DTYPE_BYTES[dtype]
    elements = math.prod(state.shape)
    if state.name == "linear" and model.architecture in OWN_CACHE:
        return elements * DTYPE_BYTES[dtype]
    if state.name in (*_SINGLE, "linear"):
        return elements * _FP32
    raise _unknown(model, f"a state named {state.name}")


def _unknown(model: ModelSpec, what: str) -> NotModelledError:
    return NotModelledError(
        f"kvplan does not know how transformers keeps {what} of {model.architecture}.",
        hint="Choose another engine.",
    )
