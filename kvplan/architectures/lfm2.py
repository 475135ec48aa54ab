"""LFM 2: short convolutions with an attention layer here and there, dense or with experts."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from kvplan.architectures.anatomy import Anatomy, Ends, decoder
from kvplan.architectures.blocks import (
    Weights,
    attention,
    experts,
    gated_mlp,
    layer_norms,
    linear,
    qk_norms,
    router,
)
from kvplan.architectures.fields import MAX_DIMENSION, MAX_EXPERTS, MAX_LAYERS, Fields, describe
from kvplan.architectures.recurrent import (
    conv_state,
    convolution,
    full_cache,
    only,
    placed,
    read_kinds,
    read_taps,
    where,
)
from kvplan.architectures.shapes import DecoderShape, read_shape
from kvplan.models.formats import ceil_div
from kvplan.models.spec import Layer

_CONV, _FULL = "conv", "full_attention"
_KINDS: Mapping[str, str] = MappingProxyType({_CONV: _CONV, _FULL: _FULL, "attention": _FULL})
_MLP = ("feed_forward.w1", "feed_forward.w3", "feed_forward.w2")
_EXPERTS = tuple(f"feed_forward.experts.{part}" for part in ("w1", "w3", "w2"))
_QK_NORMS = ("self_attn.q_layernorm", "self_attn.k_layernorm")
_ENDS = Ends(norm="embedding_norm")


def lfm2(fields: Fields) -> Anatomy:
    """LFM 2 and 2.5, dense."""
    shape = read_shape(fields, kv_heads=8)
    kinds = read_kinds(fields, "layer_types", shape.layers, _KINDS) or _indexed(fields, shape)
    width = _width(fields)
    body = gated_mlp(shape.hidden, width, layers=shape.every, names=_MLP)
    return _decoder(fields, shape, kinds, body, width=width)


def lfm2_moe(fields: Fields) -> Anatomy:
    """LFM 2 with experts after the first layers."""
    shape = read_shape(fields, kv_heads=8)
    kinds = read_kinds(fields, "layer_types", shape.layers, _KINDS)
    if kinds is None:
        raise fields.error("layer_types", None, f"a list of {shape.layers} layers")
    dense_count = fields.integer("num_dense_layers", default=2, least=0, most=MAX_LAYERS)
    dense, sparse = shape.every[:dense_count], shape.every[dense_count:]
    width = fields.integer("intermediate_size", default=7168)
    expert_width = fields.integer("moe_intermediate_size", default=1792)
    count = fields.integer("num_experts", default=32, most=MAX_EXPERTS)
    active = fields.integer("num_experts_per_tok", default=4, most=count)
    body = gated_mlp(shape.hidden, width, layers=dense, names=_MLP) + experts(
        shape.hidden, expert_width, count=count, active=active, layers=sparse, names=_EXPERTS
    )
    body += router(shape.hidden, count, layers=sparse, name="feed_forward.gate")
    widest = max(width if dense else 0, expert_width if sparse else 0)
    anatomy = _decoder(fields, shape, kinds, body, width=widest)
    chosen = {"experts": count, "experts_per_token": active} if sparse else {}
    return anatomy.model_copy(update=chosen)


def _decoder(
    fields: Fields, shape: DecoderShape, kinds: tuple[str, ...], body: Weights, *, width: int
) -> Anatomy:
    taps = read_taps(fields, "conv_L_cache", default=3)
    attentive = where(kinds, _FULL)
    names = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj")
    body += attention(shape, qkv=names, out="self_attn.out_proj", layers=attentive)
    body += placed(qk_norms(shape, (shape.head_dim, shape.head_dim), names=_QK_NORMS), attentive)
    body += _short_conv(fields, shape.hidden, taps, where(kinds, _CONV))
    layer = {
        _CONV: Layer(caches=(only(conv_state(shape.hidden, taps)),)),
        _FULL: Layer(caches=(full_cache(shape),)),
    }
    return decoder(
        shape,
        body + layer_norms(shape, ("operator_norm", "ffn_norm")),
        layers=tuple(layer[kind] for kind in kinds),
        intermediate=width,
        tied=fields.flag("tie_embedding", "tie_word_embeddings", default=True),
        ends=_ENDS,
    )


def _short_conv(fields: Fields, hidden: int, taps: int, layers: tuple[int, ...]) -> Weights:
    """Sharding: vLLM v0.33.0 vllm/model_executor/layers/mamba/short_conv.py."""
    bias = fields.flag("conv_bias", default=False)
    return (
        convolution("conv.conv", hidden, taps, layers=layers, bias=bias)
        + linear(
            "conv.in_proj",
            (3 * hidden, hidden),
            component="recurrent",
            sharding="column",
            layers=layers,
            bias=bias,
        )
        + linear(
            "conv.out_proj",
            (hidden, hidden),
            component="recurrent",
            sharding="row",
            layers=layers,
            bias=bias,
        )
    )


def _indexed(fields: Fields, shape: DecoderShape) -> tuple[str, ...]:
    """Older files list the attention layers by number; without a list all are attention."""
    stated = fields.integers("full_attn_idxs", least=0, most=MAX_LAYERS)
    attentive = set(shape.every if stated is None else stated)
    return tuple(_FULL if layer in attentive else _CONV for layer in shape.every)


def _width(fields: Fields) -> int:
    """The width of the feed-forward; by default two thirds of what is stated, rounded up."""
    stated = fields.integer("block_ff_dim", "intermediate_size", default=12_288)
    if not fields.flag("block_auto_adjust_ff_dim", default=True):
        return stated
    factor = fields.number("block_ffn_dim_multiplier") or 1.0
    multiple = fields.integer("block_multiple_of", default=256)
    width = ceil_div(int(factor * (2 * stated // 3)), multiple) * multiple
    if not 0 < width <= MAX_DIMENSION:
        raise fields.conflict(f"The feed-forward comes out {describe(width)} wide.")
    return width
