"""Persimmon."""

from __future__ import annotations

from kvplan.architectures.anatomy import Anatomy, Ends, decoder
from kvplan.architectures.blocks import attention, layer_norms, plain_mlp, qk_norms
from kvplan.architectures.fields import MAX_LAYERS, Fields
from kvplan.architectures.layers import same_layers
from kvplan.architectures.shapes import DecoderShape, split_evenly


def persimmon(fields: Fields) -> Anatomy:
    """Persimmon 8B, also the decoder of Fuyu: biases everywhere, as many KV heads as heads."""
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
    body = (
        attention(
            shape,
            qkv="self_attn.query_key_value",
            out="self_attn.dense",
            qkv_bias=True,
            out_bias=True,
        )
        + plain_mlp(
            hidden,
            intermediate,
            layers=shape.every,
            names=("mlp.dense_h_to_4h", "mlp.dense_4h_to_h"),
            bias=True,
        )
        + layer_norms(shape, bias=True)
    )
    if fields.flag("qk_layernorm", default=True):
        names = ("self_attn.q_layernorm", "self_attn.k_layernorm")
        body += qk_norms(shape, (shape.head_dim, shape.head_dim), names=names, bias=True)
    return decoder(
        shape,
        body,
        layers=same_layers(shape, window=None),
        intermediate=intermediate,
        tied=fields.flag("tie_word_embeddings", default=False),
        ends=Ends(norm="final_layernorm", norm_bias=True),
    )
