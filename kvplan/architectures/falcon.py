"""Falcon: 7B (one KV head), 40B and 180B (grouped), RW (ALiBi, all heads)."""

from __future__ import annotations

from kvplan.architectures.anatomy import Anatomy, Ends, decoder
from kvplan.architectures.blocks import Weights, attention, layer_norms, plain_mlp
from kvplan.architectures.fields import MAX_LAYERS, Fields
from kvplan.architectures.layers import same_layers
from kvplan.architectures.shapes import DecoderShape, checked, split_evenly


def falcon(fields: Fields) -> Anatomy:
    """All generations; the flags of the file tell them apart."""
    shape = _shape(fields)
    intermediate = fields.integer("ffn_hidden_size", default=4 * shape.hidden)
    bias = fields.flag("bias", default=False)
    return decoder(
        shape,
        attention(
            shape,
            qkv="self_attention.query_key_value",
            out="self_attention.dense",
            qkv_bias=bias,
            out_bias=bias,
        )
        + plain_mlp(
            shape.hidden,
            intermediate,
            layers=shape.every,
            names=("mlp.dense_h_to_4h", "mlp.dense_4h_to_h"),
            bias=bias,
        )
        + _norms(fields, shape),
        layers=same_layers(shape, window=None),
        intermediate=intermediate,
        tied=fields.flag("tie_word_embeddings", default=True),
        ends=Ends(embed="word_embeddings", norm="ln_f", norm_bias=True),
    )


def refined_web(fields: Fields) -> Anatomy:
    """The files before transformers had the class: 7B (RefinedWebModel), 40B (RefinedWeb).

    Only the 40B states KV heads: it is what the later class calls the new decoder.
    """
    defaults: dict[str, int] = {"parallel_attn": False}
    kv_heads = fields.optional_integer("n_head_kv")
    if kv_heads is not None:
        defaults |= {"num_kv_heads": kv_heads, "new_decoder_architecture": True}
    return falcon(fields.completed(defaults))


def _shape(fields: Fields) -> DecoderShape:
    hidden = fields.integer("hidden_size", "n_embed")
    heads = fields.integer("num_attention_heads", "n_head")
    shape = DecoderShape(
        layers=fields.integer("num_hidden_layers", "n_layer", most=MAX_LAYERS),
        hidden=hidden,
        heads=heads,
        kv_heads=_kv_heads(fields, heads),
        head_dim=split_evenly(fields, hidden, heads),
        vocab=fields.integer("vocab_size"),
    )
    return checked(fields, shape)


def _kv_heads(fields: Fields, heads: int) -> int:
    # The new decoder ignores multi_query; the old one ignores num_kv_heads:
    # transformers v5.24.0 src/transformers/models/falcon/modeling_falcon.py FalconAttention.
    if fields.flag("new_decoder_architecture", default=False):
        return fields.integer("num_kv_heads", default=heads)
    return 1 if fields.flag("multi_query", default=True) else heads


def _norms(fields: Fields, shape: DecoderShape) -> Weights:
    if not fields.flag("parallel_attn", default=True):
        return layer_norms(shape, bias=True)
    new = fields.flag("new_decoder_architecture", default=False)
    if fields.integer("num_ln_in_parallel_attn", default=2 if new else 1, most=2) == 2:
        return layer_norms(shape, ("ln_attn", "ln_mlp"), bias=True)
    return layer_norms(shape, ("input_layernorm",), bias=True)
