"""gpt-oss: windowed and full layers in turn, attention sinks, experts with biases."""

from __future__ import annotations

from kvplan.architectures.anatomy import Anatomy, decoder
from kvplan.architectures.blocks import Weights, attention, layer_norms, linear, router, vector
from kvplan.architectures.fields import MAX_EXPERTS, Fields
from kvplan.architectures.layers import (
    every_nth_full,
    read_layer_types,
    read_window,
    typed_layers,
)
from kvplan.architectures.shapes import DecoderShape, read_shape


def gpt_oss(fields: Fields) -> Anatomy:
    """gpt-oss 20B and 120B."""
    shape = read_shape(fields, kv_heads=8, head_dim=64)
    width = fields.integer("intermediate_size")
    count = fields.integer("num_local_experts", "num_experts", default=128, most=MAX_EXPERTS)
    active = fields.integer("num_experts_per_tok", "experts_per_token", default=4, most=count)
    types = read_layer_types(fields, shape.layers) or every_nth_full(shape.layers, 2)
    bias = fields.flag("attention_bias", default=True)
    sinks = vector(
        "self_attn.sinks",
        shape.heads,
        component="attention",
        layers=shape.every,
        sharding="column",
    )
    return decoder(
        shape,
        attention(shape, qkv_bias=bias, out_bias=bias)
        + sinks
        + _experts(shape, width, count=count, active=active)
        + router(shape.hidden, count, layers=shape.every, name="mlp.router", bias=True)
        + layer_norms(shape),
        layers=typed_layers(fields, shape, types, window=read_window(fields, default=128)),
        intermediate=width,
        tied=fields.flag("tie_word_embeddings", default=False),
        experts=count,
        experts_per_token=active,
    )


def _experts(shape: DecoderShape, width: int, *, count: int, active: int) -> Weights:
    up = linear(
        "mlp.experts.gate_up_proj",
        (2 * width, shape.hidden),
        component="experts",
        sharding="column",
        layers=shape.every,
        bias=True,
    )
    down = linear(
        "mlp.experts.down_proj",
        (shape.hidden, width),
        component="experts",
        sharding="row",
        layers=shape.every,
        bias=True,
    )
    changes = {"copies": count, "active_copies": active}
    return tuple(weight.model_copy(update=changes) for weight in up + down)
