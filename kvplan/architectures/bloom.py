"""BLOOM: ALiBi, fused projections, a normalized embedding."""

from __future__ import annotations

from kvplan.architectures.anatomy import Anatomy, Ends, decoder
from kvplan.architectures.blocks import attention, layer_norms, norm, plain_mlp
from kvplan.architectures.fields import MAX_LAYERS, Fields
from kvplan.architectures.layers import same_layers
from kvplan.architectures.shapes import DecoderShape, split_evenly


def bloom(fields: Fields) -> Anatomy:
    """All sizes; the feed-forward is always four times as wide as the residual stream."""
    hidden = fields.integer("n_embed", "hidden_size")
    heads = fields.integer("n_head", "num_attention_heads")
    shape = DecoderShape(
        layers=fields.integer("n_layer", "num_hidden_layers", most=MAX_LAYERS),
        hidden=hidden,
        heads=heads,
        kv_heads=heads,
        head_dim=split_evenly(fields, hidden, heads),
        vocab=fields.integer("vocab_size"),
    )
    return decoder(
        shape,
        norm("word_embeddings_layernorm", hidden, bias=True, place="embedding")
        + attention(
            shape,
            qkv="self_attention.query_key_value",
            out="self_attention.dense",
            qkv_bias=True,
            out_bias=True,
        )
        + plain_mlp(
            hidden,
            4 * hidden,
            layers=shape.every,
            names=("mlp.dense_h_to_4h", "mlp.dense_4h_to_h"),
            bias=True,
        )
        + layer_norms(shape, bias=True),
        layers=same_layers(shape, window=None),
        intermediate=4 * hidden,
        tied=fields.flag("tie_word_embeddings", default=True),
        ends=Ends(embed="word_embeddings", norm="ln_f", norm_bias=True),
    )
