"""Phi 3 Small."""

from __future__ import annotations

from kvplan.architectures.anatomy import Anatomy, Ends, decoder
from kvplan.architectures.blocks import attention, gated_mlp, layer_norms
from kvplan.architectures.fields import Fields
from kvplan.architectures.layers import same_layers
from kvplan.architectures.shapes import read_shape


def phi3_small(fields: Fields) -> Anatomy:
    """Phi 3 Small: every other layer attends to blocks only, and all keep every token.

    Which blocks a query reads differs from head to head, so no token can be dropped.
    """
    shape = read_shape(fields, kv_heads=8)
    intermediate = fields.integer("ff_intermediate_size", "intermediate_size")
    return decoder(
        shape,
        attention(
            shape,
            qkv="self_attn.query_key_value",
            out="self_attn.dense",
            qkv_bias=True,
            out_bias=True,
        )
        + gated_mlp(
            shape.hidden,
            intermediate,
            layers=shape.every,
            names=("mlp.up_proj", "mlp.down_proj"),
            bias=True,
        )
        + layer_norms(shape, bias=True),
        layers=same_layers(shape, window=None),
        intermediate=intermediate,
        tied=fields.flag("tie_word_embeddings", default=True),
        ends=Ends(norm="final_layernorm", norm_bias=True),
    )
