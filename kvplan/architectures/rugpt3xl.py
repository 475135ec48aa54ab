"""ruGPT-3 XL."""

from __future__ import annotations

from kvplan.architectures.anatomy import Anatomy, Ends, decoder
from kvplan.architectures.blocks import attention, layer_norms, plain_mlp, positions
from kvplan.architectures.fields import MAX_LAYERS, Fields
from kvplan.architectures.layers import same_layers
from kvplan.architectures.shapes import DecoderShape, split_evenly


def rugpt3xl(fields: Fields) -> Anatomy:
    """ruGPT-3 XL: learned positions, biases everywhere; sparse reading drops no token."""
    hidden = fields.integer("hidden_size")
    heads = fields.integer("num_attention_heads")
    shape = DecoderShape(
        layers=fields.integer("num_hidden_layers", most=MAX_LAYERS),
        hidden=hidden,
        heads=heads,
        kv_heads=heads,
        head_dim=split_evenly(fields, hidden, heads),
        vocab=fields.integer("vocab_size"),
    )
    intermediate = fields.integer("intermediate_size")
    places = fields.integer("max_position_embeddings", default=2048)
    return decoder(
        shape,
        positions(places, hidden, "embed_positions")
        + attention(shape, qkv_bias=True, out_bias=True)
        + plain_mlp(
            hidden,
            intermediate,
            layers=shape.every,
            names=("mlp.up_proj", "mlp.down_proj"),
            bias=True,
        )
        + layer_norms(shape, bias=True),
        layers=same_layers(shape, window=None),
        intermediate=intermediate,
        tied=fields.flag("tie_word_embeddings", default=False),
        ends=Ends(norm_bias=True),
    )
