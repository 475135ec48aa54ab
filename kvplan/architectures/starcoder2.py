"""StarCoder 2."""

from __future__ import annotations

from kvplan.architectures.anatomy import Anatomy, Ends, decoder
from kvplan.architectures.blocks import attention, layer_norms, plain_mlp
from kvplan.architectures.fields import Fields
from kvplan.architectures.layers import read_window, same_layers
from kvplan.architectures.shapes import read_shape


def starcoder2(fields: Fields) -> Anatomy:
    """StarCoder 2 in its three sizes: one window for all layers, biases everywhere."""
    shape = read_shape(fields, kv_heads=2)
    intermediate = fields.integer("intermediate_size")
    bias = fields.flag("use_bias", default=True)
    return decoder(
        shape,
        attention(shape, qkv_bias=bias, out_bias=bias)
        + plain_mlp(
            shape.hidden,
            intermediate,
            layers=shape.every,
            names=("mlp.c_fc", "mlp.c_proj"),
            bias=bias,
        )
        + layer_norms(shape, bias=True),
        layers=same_layers(shape, window=read_window(fields)),
        intermediate=intermediate,
        tied=fields.flag("tie_word_embeddings", default=True),
        ends=Ends(norm_bias=True),
    )
