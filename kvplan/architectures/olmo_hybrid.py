"""OLMo hybrids: gated DeltaNet, and in every fourth layer the attention of OLMo 2."""

from __future__ import annotations

from kvplan.architectures.anatomy import Anatomy, decoder
from kvplan.architectures.blocks import (
    Weights,
    attention,
    gated_mlp,
    layer_norms,
    linear,
    norm,
    qk_norms,
)
from kvplan.architectures.delta_net import MAX_HEADS, NAME, DeltaNet, checked_heads, delta_net_cache
from kvplan.architectures.fields import MAX_DIMENSION, Fields, describe
from kvplan.architectures.recurrent import (
    convolution,
    full_cache,
    per_channel,
    placed,
    read_kinds,
    read_taps,
    where,
)
from kvplan.architectures.shapes import DecoderShape, read_shape
from kvplan.models.spec import Layer

_LINEAR, _FULL = "linear_attention", "full_attention"
_KINDS = {_LINEAR: _LINEAR, _FULL: _FULL}
_AFTER_NORMS = ("post_attention_layernorm", "post_feedforward_layernorm")
_BEFORE_NORMS = ("input_layernorm", "post_attention_layernorm")


def olmo_hybrid(fields: Fields) -> Anatomy:
    """A linear layer normalizes what it reads, one of attention what it writes."""
    shape = read_shape(fields)
    kinds = read_kinds(fields, "layer_types", shape.layers, _KINDS) or _default_kinds(fields, shape)
    sizes = _delta_net(fields, shape)
    width = fields.integer("intermediate_size", default=11_008)
    linear_layers, full_layers = where(kinds, _LINEAR), where(kinds, _FULL)
    bias = fields.flag("attention_bias", default=False)
    attentive = attention(shape, qkv_bias=bias, out_bias=bias)
    attentive += qk_norms(shape, (shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim))
    attentive += layer_norms(shape, _AFTER_NORMS)
    body = _mixer(sizes, shape.hidden, linear_layers) + placed(attentive, full_layers)
    body += placed(layer_norms(shape, _BEFORE_NORMS), linear_layers)
    layer = {
        _LINEAR: Layer(caches=(delta_net_cache(sizes),)),
        _FULL: Layer(caches=(full_cache(shape),)),
    }
    return decoder(
        shape,
        body + gated_mlp(shape.hidden, width, layers=shape.every),
        layers=tuple(layer[kind] for kind in kinds),
        intermediate=width,
        tied=fields.flag("tie_word_embeddings", default=False),
    )


def _default_kinds(fields: Fields, shape: DecoderShape) -> tuple[str, ...]:
    fields.fill("layer_types", "every fourth full_attention")
    if shape.layers < 4:
        return (_LINEAR,) * (shape.layers - 1) + (_FULL,)
    return tuple(_LINEAR if (layer + 1) % 4 else _FULL for layer in shape.every)


def _delta_net(fields: Fields, shape: DecoderShape) -> DeltaNet:
    key_heads = fields.integer("linear_num_key_heads", default=shape.heads, most=MAX_HEADS)
    # Three quarters of the hidden size in all, and twice as much for the values.
    key_dim = fields.optional_integer("linear_key_head_dim") or 3 * shape.hidden // (4 * key_heads)
    if not 0 < key_dim <= MAX_DIMENSION:
        raise fields.conflict(f"A key head comes out {describe(key_dim)} wide.")
    sizes = DeltaNet(
        key_heads=key_heads,
        key_dim=key_dim,
        value_heads=fields.integer("linear_num_value_heads", default=shape.heads, most=MAX_HEADS),
        value_dim=fields.optional_integer("linear_value_head_dim") or 2 * key_dim,
        taps=read_taps(fields, "linear_conv_kernel_dim", default=4),
    )
    return checked_heads(fields, sizes)


def _mixer(sizes: DeltaNet, hidden: int, layers: tuple[int, ...]) -> Weights:
    """Sharding: vLLM v0.33.0 vllm/model_executor/models/olmo_hybrid.py."""
    rows = {"q": sizes.keys, "k": sizes.keys, "v": sizes.values}
    weights: Weights = ()
    for name, size in rows.items():
        weights += convolution(f"{NAME}.{name}_conv1d", size, sizes.taps, layers=layers, bias=False)
    gates = {"g": sizes.values, "a": sizes.value_heads, "b": sizes.value_heads}
    for name, size in (rows | gates).items():
        weights += linear(
            f"{NAME}.{name}_proj",
            (size, hidden),
            component="recurrent",
            sharding="column",
            layers=layers,
        )
    weights += per_channel((f"{NAME}.A_log", f"{NAME}.dt_bias"), sizes.value_heads, layers)
    weights += norm(f"{NAME}.o_norm", sizes.value_dim, layers=layers, component="recurrent")
    return weights + linear(
        f"{NAME}.o_proj",
        (hidden, sizes.values),
        component="recurrent",
        sharding="row",
        layers=layers,
    )
