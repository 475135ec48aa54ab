"""Zamba 2: Mamba 2 layers, some of which also run one of a few shared attention blocks."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar

from pydantic import BaseModel, ConfigDict

from kvplan.architectures.anatomy import Anatomy, Ends, decoder
from kvplan.architectures.blocks import Weights, attention, gated_mlp, linear, norm
from kvplan.architectures.fields import MAX_LAYERS, Fields
from kvplan.architectures.mamba2 import (
    MAX_HEADS,
    Mamba2,
    checked_sizes,
    mamba2_cache,
    mamba2_mixer,
)
from kvplan.architectures.recurrent import full_cache, read_kinds, read_taps, where
from kvplan.architectures.shapes import DecoderShape, checked, split_evenly
from kvplan.models.caches import RecurrentCache
from kvplan.models.spec import Layer
from kvplan.models.weights import Component

_MAMBA, _HYBRID = "mamba", "hybrid"
_KINDS: Mapping[str, str] = MappingProxyType(
    {"mamba": _MAMBA, "linear_attention": _MAMBA, "hybrid": _HYBRID}
)
_DEFAULT_KINDS = (
    (_MAMBA,)
    + ((_MAMBA,) * 5 + (_HYBRID,)) * 7
    + (_MAMBA,) * 4
    + (_HYBRID,)
    + (_MAMBA,) * 3
    + (_HYBRID,)
    + (_MAMBA,) * 2
)
_BLOCK = "shared_transformer"
_MOST_BLOCKS = 64


class Shared(BaseModel):
    """Sizes of the shared blocks.

    Attributes:
        blocks: How many there are; runs take them in turn.
        width: Of the feed-forward.
        rank: Of the adapters that each run has of its own.
        attention_adapters: Whether attention has them too, beside the feed-forward.
        bias: Whether the feed-forward shifts.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    blocks: int
    width: int
    rank: int
    attention_adapters: bool
    bias: bool


def zamba2(fields: Fields) -> Anatomy:
    """Every run of a shared block keeps keys and values of its own."""
    count = fields.integer("num_hidden_layers", default=54, most=MAX_LAYERS)
    kinds = read_kinds(fields, "layers_block_type", count, _KINDS) or _default_kinds(fields, count)
    shape = _shape(fields, count)
    sizes, shared = _mamba(fields, shape.hidden), _shared(fields, shape.hidden)
    runs = where(kinds, _HYBRID)
    return decoder(
        shape,
        _mixers(sizes, shape.hidden, kinds) + _runs(shape, runs) + _blocks(shape, shared, runs),
        layers=_layers(shape, mamba2_cache(sizes), kinds),
        intermediate=shared.width,
        tied=fields.flag("tie_word_embeddings", default=True),
        ends=Ends(norm="final_layernorm"),
    )


def _layers(
    shape: DecoderShape, state: RecurrentCache, kinds: tuple[str, ...]
) -> tuple[Layer, ...]:
    plain, hybrid = Layer(caches=(state,)), Layer(caches=(full_cache(shape), state))
    return tuple(hybrid if kind == _HYBRID else plain for kind in kinds)


def _mixers(sizes: Mamba2, hidden: int, kinds: tuple[str, ...]) -> Weights:
    plain, hybrid = where(kinds, _MAMBA), where(kinds, _HYBRID)
    return (
        mamba2_mixer("mamba", sizes, hidden, plain)
        + norm("input_layernorm", hidden, layers=plain)
        + mamba2_mixer("mamba_decoder.mamba", sizes, hidden, hybrid)
        + norm("mamba_decoder.input_layernorm", hidden, layers=hybrid)
    )


def _runs(shape: DecoderShape, runs: tuple[int, ...]) -> Weights:
    return linear(
        "linear",
        (shape.hidden, shape.hidden),
        component="attention",
        sharding="replicated",
        layers=runs,
    )


def _blocks(shape: DecoderShape, shared: Shared, runs: tuple[int, ...]) -> Weights:
    """Each block is stored once, at its first run."""
    # Attention reads the hidden state beside the embedding: twice the width.
    twice = shape.model_copy(update={"hidden": 2 * shape.hidden})
    names = tuple(f"{_BLOCK}.self_attn.{kind}_proj" for kind in "qkv")
    mlp = (f"{_BLOCK}.feed_forward.gate_up_proj", f"{_BLOCK}.feed_forward.down_proj")
    at = runs[: shared.blocks]
    projections = attention(twice, qkv=(names[0], names[1], names[2]), layers=at)[:3]
    output = linear(
        f"{_BLOCK}.self_attn.o_proj",
        (shape.hidden, shape.heads * shape.head_dim),
        component="attention",
        sharding="row",
        layers=at,
    )
    return (
        projections
        + output
        + gated_mlp(shape.hidden, shared.width, layers=at, names=mlp, bias=shared.bias)
        + norm(f"{_BLOCK}.input_layernorm", twice.hidden, layers=at)
        + norm(f"{_BLOCK}.pre_ff_layernorm", shape.hidden, layers=at)
        + _adapters(shape, shared, runs)
    )


def _adapters(shape: DecoderShape, shared: Shared, runs: tuple[int, ...]) -> Weights:
    """Low-rank corrections, one set a run, kept in the block that the run takes."""
    hidden, both = shape.hidden, 2 * shape.hidden
    mlp = f"{_BLOCK}.feed_forward.gate_up_proj_adapter_list"
    weights: Weights = ()
    for run in range(len(runs)):
        at = (runs[run % shared.blocks],)
        weights += _adapter(f"{mlp}.{run}", (hidden, 2 * shared.width), shared.rank, at, "mlp")
        if shared.attention_adapters:
            for kind in "qkv":
                name = f"{_BLOCK}.self_attn.linear_{kind}_adapter_list.{run}"
                weights += _adapter(name, (both, both), shared.rank, at, "attention")
    return weights


def _adapter(
    name: str, size: tuple[int, int], rank: int, layers: tuple[int, ...], component: Component
) -> Weights:
    inputs, outputs = size
    down = linear(
        f"{name}.0", (rank, inputs), component=component, sharding="column", layers=layers
    )
    up = linear(f"{name}.1", (outputs, rank), component=component, sharding="column", layers=layers)
    return down + up


def _default_kinds(fields: Fields, count: int) -> tuple[str, ...]:
    if count != len(_DEFAULT_KINDS):
        raise fields.error("layers_block_type", None, f"a list of {count} layers")
    fields.fill("layers_block_type", f"{len(_DEFAULT_KINDS)} layers of the class")
    return _DEFAULT_KINDS


def _shape(fields: Fields, layers: int) -> DecoderShape:
    hidden = fields.integer("hidden_size", default=2560)
    heads = fields.integer("num_attention_heads", default=32)
    kv_heads = fields.optional_integer("num_key_value_heads") or heads
    shape = DecoderShape(
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=split_evenly(fields, 2 * hidden, heads),
        vocab=fields.integer("vocab_size", default=32_000),
    )
    return checked(fields, shape)


def _mamba(fields: Fields, hidden: int) -> Mamba2:
    inner = fields.integer("mamba_expand", default=2, most=1024) * hidden
    heads = fields.integer("n_mamba_heads", default=8, most=MAX_HEADS)
    bias = fields.flag("add_bias_linear", default=False)
    sizes = Mamba2(
        heads=heads,
        head_dim=split_evenly(fields, inner, heads),
        groups=fields.integer("mamba_ngroups", default=1, most=MAX_HEADS),
        state=fields.integer("mamba_d_state", default=64),
        taps=read_taps(fields, "mamba_d_conv", default=4),
        bias=bias,
        out_bias=bias,
        conv_bias=True,  # the class ignores `use_conv_bias`
    )
    return checked_sizes(fields, sizes)


def _shared(fields: Fields, hidden: int) -> Shared:
    width = fields.optional_integer("intermediate_size")
    return Shared(
        blocks=fields.integer("num_mem_blocks", default=1, most=_MOST_BLOCKS),
        width=width or 4 * hidden,
        rank=fields.integer("adapter_rank", default=128),
        attention_adapters=fields.flag("use_shared_attention_adapter", default=False),
        bias=fields.flag("add_bias_linear", default=False),
    )
