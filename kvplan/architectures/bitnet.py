"""BitNet b1.58."""

from __future__ import annotations

from kvplan.architectures.anatomy import Anatomy, decoder
from kvplan.architectures.blocks import attention, gated_mlp, layer_norms, norm
from kvplan.architectures.fields import Fields
from kvplan.architectures.layers import same_layers
from kvplan.architectures.shapes import read_shape


def bitnet(fields: Fields) -> Anatomy:
    """BitNet 2B in 16 bits: Llama with a normalization inside attention and feed-forward."""
    shape = read_shape(fields, kv_heads=5)
    intermediate = fields.integer("intermediate_size")
    bias = fields.flag("attention_bias", default=False)
    return decoder(
        shape,
        attention(shape, qkv_bias=bias, out_bias=bias)
        + gated_mlp(shape.hidden, intermediate, layers=shape.every)
        + norm("self_attn.attn_sub_norm", shape.hidden, layers=shape.every)
        + norm("mlp.ffn_sub_norm", intermediate, layers=shape.every)
        + layer_norms(shape),
        layers=same_layers(shape, window=None),
        intermediate=intermediate,
        tied=fields.flag("tie_word_embeddings", default=False),
    )
