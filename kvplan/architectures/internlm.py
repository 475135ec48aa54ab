"""InternLM 1, 2, 2.5 and 3."""

from __future__ import annotations

from kvplan.architectures.anatomy import Anatomy, Ends, decoder
from kvplan.architectures.blocks import attention, gated_mlp, layer_norms
from kvplan.architectures.fields import Fields
from kvplan.architectures.layers import same_layers
from kvplan.architectures.shapes import read_shape


def internlm(fields: Fields) -> Anatomy:
    """InternLM 1: Llama with a bias on query, key, value and output."""
    shape = read_shape(fields)
    intermediate = fields.integer("intermediate_size")
    bias = fields.flag("bias", default=True)
    return decoder(
        shape,
        attention(shape, qkv_bias=bias, out_bias=bias)
        + gated_mlp(shape.hidden, intermediate, layers=shape.every)
        + layer_norms(shape),
        layers=same_layers(shape, window=None),
        intermediate=intermediate,
        tied=fields.flag("tie_word_embeddings", default=False),
    )


def internlm2(fields: Fields) -> Anatomy:
    """InternLM 2 and 2.5: one fused projection, names of its own."""
    shape = read_shape(fields)
    intermediate = fields.integer("intermediate_size")
    bias = fields.flag("bias", default=False)
    return decoder(
        shape,
        attention(shape, qkv="attention.wqkv", out="attention.wo", qkv_bias=bias, out_bias=bias)
        + gated_mlp(
            shape.hidden,
            intermediate,
            layers=shape.every,
            names=("feed_forward.w1", "feed_forward.w3", "feed_forward.w2"),
        )
        + layer_norms(shape, ("attention_norm", "ffn_norm")),
        layers=same_layers(shape, window=None),
        intermediate=intermediate,
        tied=fields.flag("tie_word_embeddings", default=False),
        ends=Ends(embed="tok_embeddings", head="output"),
    )


def internlm3(fields: Fields) -> Anatomy:
    """InternLM 3: Llama with flags of its own for biases."""
    shape = read_shape(fields, kv_heads=2, head_dim=128)
    intermediate = fields.integer("intermediate_size")
    bias = fields.flag("attention_bias", "qkv_bias", default=False)
    rest = fields.flag("mlp_bias", "bias", default=False)
    return decoder(
        shape,
        attention(shape, qkv_bias=bias, out_bias=rest)
        + gated_mlp(shape.hidden, intermediate, layers=shape.every, bias=rest)
        + layer_norms(shape),
        layers=same_layers(shape, window=None),
        intermediate=intermediate,
        tied=fields.flag("tie_word_embeddings", default=False),
    )
