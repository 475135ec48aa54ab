"""What each layer of a GGUF model keeps, from the file's own figures.

The metadata states heads and sizes, layer by layer where they differ. What it leaves out is which
layers have a window, and what the layers without attention are: llama.cpp decides both by the
architecture's name. Source: ggml-org/llama.cpp@0c1e57098 src/models/ (``load_arch_hparams``) and
src/llama-hparams.cpp (``set_swa_pattern``, ``n_embd_r``, ``n_embd_s``).
"""

from __future__ import annotations

from typing import NamedTuple

from kvplan.architectures.fields import MAX_LAYERS, MAX_POSITIONS
from kvplan.architectures.gguf_families import GGUF_FAMILIES, GgufFamily
from kvplan.architectures.gguf_keys import GgufKeys
from kvplan.errors import NotModelledError
from kvplan.models.caches import (
    ChunkedCache,
    FullCache,
    IndexerCache,
    LatentCache,
    LayerCache,
    RecurrentCache,
    SharedCache,
    StateTensor,
    WindowCache,
)
from kvplan.models.spec import Layer

_MAX_HEADS = 65_536


class _Heads(NamedTuple):
    """Sizes of attention, layer by layer where they differ."""

    kv: tuple[int, ...]
    key: int
    value: int
    local_key: int
    local_value: int


def gguf_layers(keys: GgufKeys) -> tuple[Layer, ...]:
    """The layers' caches in order.

    Raises:
        NotModelledError: an architecture that is not in the table.
        InputError: figures that are missing or contradict each other.
    """
    family = GGUF_FAMILIES.get(keys.architecture)
    if family is None:
        raise NotModelledError(
            f"GGUF files of the architecture {keys.architecture[:40]!r} are not modelled.",
            hint=f"Modelled are {', '.join(sorted(GGUF_FAMILIES))}.",
        )
    count = layer_count(keys)
    heads = _heads(keys, count)
    local = _local(keys, family, count)
    recurrent = _recurrent(keys, family, heads, count)
    state = _state(keys) if any(recurrent) else None
    caches = [
        _caches(keys, family, heads, layer, local=local[layer], state=recurrent[layer] and state)
        for layer in range(count)
    ]
    shared = keys.optional("attention.shared_kv_layers", most=MAX_LAYERS) or 0
    if shared >= count:
        raise keys.fields.conflict(f"{shared} of {count} layers read the cache of another.")
    interned: dict[tuple[LayerCache, ...], Layer] = {}
    return tuple(
        interned.setdefault(kept, Layer(caches=kept))
        for kept in _with_shared(caches, local, count - shared)
    )


def layer_count(keys: GgufKeys) -> int:
    """Decoder layers, without those that predict further tokens.

    Raises:
        InputError: none are left.
    """
    count = keys.whole("block_count", most=MAX_LAYERS)
    ahead = keys.optional("nextn_predict_layers", most=MAX_LAYERS) or 0
    if ahead >= count:
        raise keys.fields.conflict(f"{ahead} of {count} layers predict further tokens.")
    return count - ahead


def _heads(keys: GgufKeys, count: int) -> _Heads:
    query = keys.per_layer("attention.head_count", count)
    kv = (
        keys.per_layer("attention.head_count_kv", count)
        if keys.fields.has(f"{keys.architecture}.attention.head_count_kv")
        else query
    )
    if max(kv) > _MAX_HEADS:
        raise keys.fields.conflict(f"A layer has {max(kv):,} KV heads.")
    hidden, widest = keys.whole("embedding_length"), max(query)
    even = hidden // widest if widest else 0
    key = keys.optional("attention.key_length") or even
    value = keys.optional("attention.value_length") or even
    if any(kv) and not (key and value):
        raise keys.fields.conflict("There are KV heads, but the size of one is not stated.")
    return _Heads(
        kv=kv,
        key=key,
        value=value,
        local_key=keys.optional("attention.key_length_swa") or key,
        local_value=keys.optional("attention.value_length_swa") or value,
    )


def _local(keys: GgufKeys, family: GgufFamily, count: int) -> tuple[bool, ...]:
    """Which layers have a window."""
    if family.period is None or _window(keys, family) is None:
        return (False,) * count
    name = f"{keys.architecture}.attention.sliding_window_pattern"
    stated = keys.fields.raw(name)
    if isinstance(stated, tuple | list):
        if len(stated) < count:
            raise keys.fields.conflict(f"`{name}` lists {len(stated)} layers of {count}.")
        return tuple(bool(item) for item in stated[:count])
    period = keys.fields.integer(name, default=family.period, least=0, most=MAX_LAYERS)
    return tuple(period == 0 or layer % period < period - 1 for layer in range(count))


def _window(keys: GgufKeys, family: GgufFamily) -> int | None:
    name = f"{keys.architecture}.attention.sliding_window"
    if family.local == "chunk":
        off = keys.fields.states(name) and keys.fields.raw(name) == 0
        return None if off else family.window
    return (
        keys.fields.optional_integer(name, default=family.window, least=0, most=MAX_POSITIONS)
        or None
    )


def _recurrent(keys: GgufKeys, family: GgufFamily, heads: _Heads, count: int) -> tuple[bool, ...]:
    if family.parallel:
        return (True,) * count
    if family.recurrent == "no":
        return (False,) * count
    if family.recurrent == "interval":
        every = keys.whole("full_attention_interval", default=4, most=MAX_LAYERS)
        return tuple((layer + 1) % every != 0 for layer in range(count))
    # A layer of Nemotron-H is one thing only: attention, a feed-forward or a state.
    alone = keys.architecture.startswith("nemotron_h")
    width = keys.per_layer("feed_forward_length", count, default=0) if alone else (0,) * count
    return tuple(kv == 0 and feed == 0 for kv, feed in zip(heads.kv, width, strict=True))


def _state(keys: GgufKeys) -> RecurrentCache:
    """The state of one layer; llama.cpp keeps it in float32 whatever the cache's type."""
    short = keys.optional("shortconv.l_cache")
    if short is not None:
        if short < 2:
            raise keys.fields.conflict("A convolution over one token keeps no state.")
        return RecurrentCache(
            states=(_tensor("conv", (short - 1, keys.whole("embedding_length"))),)
        )
    kernel, inner = keys.whole("ssm.conv_kernel", most=4096), keys.whole("ssm.inner_size")
    size = keys.whole("ssm.state_size")
    groups = keys.optional("ssm.group_count") or 0
    states: tuple[StateTensor, ...] = (_tensor("ssm", (inner, size)),)
    if kernel > 1:
        states = (_tensor("conv", (kernel - 1, inner + 2 * groups * size)), *states)
    return RecurrentCache(states=states)


def _tensor(name: str, shape: tuple[int, int]) -> StateTensor:
    return StateTensor(name=name, shape=shape, split=None, dtype="float32")


def _caches(
    keys: GgufKeys,
    family: GgufFamily,
    heads: _Heads,
    layer: int,
    *,
    local: bool,
    state: RecurrentCache | bool | None,
) -> tuple[LayerCache, ...]:
    kept: tuple[LayerCache, ...] = (state,) if isinstance(state, RecurrentCache) else ()
    kv = heads.kv[layer]
    if kv == 0 or (kept and not family.parallel):
        return kept
    if keys.optional("attention.key_length_mla"):
        rank = keys.whole("attention.kv_lora_rank")
        rope = heads.key - rank
        if rope < 0:
            raise keys.fields.conflict("The cached key is shorter than its latent part.")
        return (*kept, LatentCache(latent_dim=rank, rope_dim=rope), *_indexer(keys, family))
    if not local:
        cache = FullCache(kv_heads=kv, head_dim=heads.key, head_dim_v=heads.value)
        return (*kept, cache)
    return (*kept, _local_cache(family, heads, kv, _window(keys, family) or 1))


def _indexer(keys: GgufKeys, family: GgufFamily) -> tuple[LayerCache, ...]:
    if not family.indexer:
        return ()
    # llama.cpp keeps its keys in the type of the cache, without scales of their own.
    size = keys.whole("attention.indexer.key_length")
    return (IndexerCache(head_dim=size, scale_block=None, element_bytes=2),)


def _local_cache(family: GgufFamily, heads: _Heads, kv: int, tokens: int) -> LayerCache:
    key, value = heads.local_key, heads.local_value
    if family.local == "chunk":
        return ChunkedCache(kv_heads=kv, head_dim=key, head_dim_v=value, chunk=tokens)
    return WindowCache(kv_heads=kv, head_dim=key, head_dim_v=value, window=tokens)


def _with_shared(
    caches: list[tuple[LayerCache, ...]], local: tuple[bool, ...], shared_from: int
) -> list[tuple[LayerCache, ...]]:
    """From some layer on each reads the cache of the last of its kind before."""
    if shared_from >= len(caches):
        return caches
    source = {local[layer]: layer for layer in range(shared_from)}
    return caches[:shared_from] + [
        (SharedCache(layer=source.get(local[layer], 0)),)
        for layer in range(shared_from, len(caches))
    ]
