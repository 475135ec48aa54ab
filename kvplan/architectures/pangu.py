"""openPangu Embedded."""

from __future__ import annotations

from kvplan.architectures.anatomy import Anatomy, decoder
from kvplan.architectures.blocks import attention, gated_mlp, layer_norms
from kvplan.architectures.fields import Fields
from kvplan.architectures.layers import same_layers
from kvplan.architectures.shapes import read_shape


def pangu_embedded(fields: Fields) -> Anatomy:
    """Embedded 1B and 7B of openPangu: Llama with a bias on query, key, value and output."""
    shape = read_shape(fields)
    intermediate = fields.integer("intermediate_size")
    bias = fields.flag("attention_bias", "bias", default=False)
    return decoder(
        shape,
        attention(shape, qkv_bias=bias, out_bias=bias)
        + gated_mlp(
            shape.hidden,
            intermediate,
            layers=shape.every,
            bias=fields.flag("mlp_bias", default=False),
        )
        + layer_norms(shape),
        layers=same_layers(shape, window=None),
        intermediate=intermediate,
        tied=fields.flag("tie_word_embeddings", default=False),
    )
