"""Spark X2.5."""

from __future__ import annotations

from kvplan.architectures.anatomy import Anatomy, Ends, decoder
from kvplan.architectures.blocks import attention, gated_mlp, layer_norms, linear
from kvplan.architectures.fields import Fields
from kvplan.architectures.layers import (
    every_nth_full,
    read_layer_types,
    read_window,
    typed_layers,
)
from kvplan.architectures.shapes import read_shape


def spark2_5(fields: Fields) -> Anatomy:
    """Spark X2.5: three windowed layers, then a full one; a gate on each head's output."""
    shape = read_shape(fields, kv_heads=2, head_dim=256)
    intermediate = fields.integer("intermediate_size")
    types = read_layer_types(fields, shape.layers) or every_nth_full(shape.layers, 4)
    bias = fields.flag("attention_bias", default=False)
    body = attention(
        shape,
        qkv="self_attn.q_k_v_proj",
        out="self_attn.out_proj",
        qkv_bias=bias,
        out_bias=bias,
    )
    if fields.flag("headwise_attn_output_gate", default=True):
        body += linear(
            "self_attn.g_proj",
            (shape.heads, shape.hidden),
            component="attention",
            sharding="column",
            layers=shape.every,
        )
    return decoder(
        shape,
        body
        + gated_mlp(
            shape.hidden,
            intermediate,
            layers=shape.every,
            bias=fields.flag("mlp_bias", default=False),
        )
        + layer_norms(shape),
        layers=typed_layers(fields, shape, types, window=read_window(fields, default=512)),
        intermediate=intermediate,
        tied=fields.flag("tie_word_embeddings", default=False),
        ends=Ends(embed="embedding"),
    )
