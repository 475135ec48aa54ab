"""HyperCLOVA X Seed."""

from __future__ import annotations

from kvplan.architectures.anatomy import Anatomy, decoder
from kvplan.architectures.blocks import attention, gated_mlp, layer_norms
from kvplan.architectures.fields import Fields
from kvplan.architectures.layers import same_layers
from kvplan.architectures.shapes import read_shape

_TWO = ("input_layernorm", "post_attention_layernorm")
_FOUR = (*_TWO, "post_norm1", "post_norm2")


def hyperclovax(fields: Fields) -> Anatomy:
    """HyperCLOVA X Seed Think: Granite, normalized after attention and feed-forward too."""
    shape = read_shape(fields)
    intermediate = fields.integer("intermediate_size")
    bias = fields.flag("attention_bias", default=False)
    norms = _FOUR if fields.flag("use_post_norm", default=True) else _TWO
    return decoder(
        shape,
        attention(shape, qkv_bias=bias, out_bias=bias)
        + gated_mlp(
            shape.hidden,
            intermediate,
            layers=shape.every,
            bias=fields.flag("mlp_bias", default=False),
        )
        + layer_norms(shape, norms),
        layers=same_layers(shape, window=None),
        intermediate=intermediate,
        tied=fields.flag("tie_word_embeddings", default=False),
    )
