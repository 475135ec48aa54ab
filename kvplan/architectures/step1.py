"""Step 1 (step1)."""

from __future__ import annotations

from kvplan.architectures.anatomy import Anatomy, decoder
from kvplan.architectures.blocks import attention, gated_mlp, layer_norms
from kvplan.architectures.fields import MAX_LAYERS, Fields
from kvplan.architectures.layers import same_layers
from kvplan.architectures.shapes import DecoderShape, checked, split_evenly


def step1(fields: Fields) -> Anatomy:
    """Step 1, and the language part of Step Audio: ALiBi, a few shared KV heads."""
    hidden = fields.integer("hidden_size")
    heads = fields.integer("num_attention_heads")
    shape = DecoderShape(
        layers=fields.integer("num_hidden_layers", most=MAX_LAYERS),
        hidden=hidden,
        heads=heads,
        kv_heads=fields.integer("num_attention_groups", "num_key_value_heads", default=1),
        head_dim=split_evenly(fields, hidden, heads),
        vocab=fields.integer("vocab_size"),
    )
    checked(fields, shape)
    intermediate = fields.integer("intermediate_size")
    bias = fields.flag("attention_bias", default=False)
    return decoder(
        shape,
        attention(shape, qkv_bias=bias, out_bias=bias)
        + gated_mlp(
            hidden,
            intermediate,
            layers=shape.every,
            bias=fields.flag("mlp_bias", default=False),
        )
        + layer_norms(shape),
        layers=same_layers(shape, window=None),
        intermediate=intermediate,
        tied=fields.flag("tie_word_embeddings", default=False),
    )
