"""Phi 1, 1.5 and 2 in transformers' own form; Phi 3, 3.5 and 4."""

from __future__ import annotations

from kvplan.architectures.anatomy import Anatomy, Ends, decoder
from kvplan.architectures.blocks import (
    attention,
    gated_mlp,
    layer_norms,
    plain_mlp,
    qk_norms,
    vector,
)
from kvplan.architectures.fields import Fields
from kvplan.architectures.layers import read_window, same_layers
from kvplan.architectures.shapes import read_shape


def phi(fields: Fields) -> Anatomy:
    """Phi 1 to 2: attention and feed-forward side by side, biases everywhere."""
    shape = read_shape(fields)
    intermediate = fields.integer("intermediate_size")
    body = (
        attention(shape, out="self_attn.dense", qkv_bias=True, out_bias=True)
        + plain_mlp(
            shape.hidden,
            intermediate,
            layers=shape.every,
            names=("mlp.fc1", "mlp.fc2"),
            bias=True,
        )
        + layer_norms(shape, ("input_layernorm",), bias=True)
        # The head's bias exists whether or not its matrix is the embedding's.
        + vector("lm_head.bias", shape.vocab, component="lm_head", place="head", sharding="vocab")
    )
    if fields.flag("qk_layernorm", default=False):
        size = shape.hidden // shape.heads
        names = ("self_attn.q_layernorm", "self_attn.k_layernorm")
        body += qk_norms(shape, (size, size), names=names, bias=True)
    return decoder(
        shape,
        body,
        layers=same_layers(shape, window=None),
        intermediate=intermediate,
        tied=fields.flag("tie_word_embeddings", default=False),
        ends=Ends(norm="final_layernorm", norm_bias=True),
    )


def phi3(fields: Fields) -> Anatomy:
    """Phi 3, 3.5 and 4: fused projections; one window for all layers, or none."""
    shape = read_shape(fields)
    intermediate = fields.integer("intermediate_size")
    return decoder(
        shape,
        attention(shape, qkv="self_attn.qkv_proj")
        + gated_mlp(
            shape.hidden,
            intermediate,
            layers=shape.every,
            names=("mlp.gate_up_proj", "mlp.down_proj"),
        )
        + layer_norms(shape),
        layers=same_layers(shape, window=read_window(fields)),
        intermediate=intermediate,
        tied=fields.flag("tie_word_embeddings", default=False),
    )
