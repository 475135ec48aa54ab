"""ChatGLM 1, 2 and 3, GLM 4 9B, CodeGeeX (chatglm)."""

from __future__ import annotations

from kvplan.architectures.anatomy import Anatomy, Ends, decoder
from kvplan.architectures.blocks import Weights, attention, gated_mlp, layer_norms, plain_mlp
from kvplan.architectures.fields import MAX_LAYERS, Fields
from kvplan.architectures.layers import same_layers
from kvplan.architectures.shapes import DecoderShape, checked, split_evenly

_MLP = ("mlp.dense_h_to_4h", "mlp.dense_4h_to_h")


def chatglm(fields: Fields) -> Anatomy:
    """All generations; only the first states its feed-forward as ``inner_hidden_size``."""
    return _first(fields) if fields.has("inner_hidden_size") else _later(fields)


def _first(fields: Fields) -> Anatomy:
    """ChatGLM 6B: all heads of their own, biases everywhere.

    ``samson-wang/chatglm-6b-huggingface@867860a6:modeling_chatglm.py``.
    """
    heads = fields.integer("num_attention_heads")
    shape = _shape(fields, heads, kv_heads=heads)
    intermediate = fields.integer("inner_hidden_size")
    body = (
        attention(
            shape,
            qkv="attention.query_key_value",
            out="attention.dense",
            qkv_bias=True,
            out_bias=True,
        )
        + plain_mlp(shape.hidden, intermediate, layers=shape.every, names=_MLP, bias=True)
        + layer_norms(shape, bias=True)
    )
    return decoder(
        shape,
        body,
        layers=same_layers(shape, window=None),
        intermediate=intermediate,
        # Its files hold a copy of the tied head.
        tied=fields.flag("tie_word_embeddings", default=True),
        ends=Ends(embed="word_embeddings", norm="final_layernorm", norm_bias=True),
    )


def _later(fields: Fields) -> Anatomy:
    """ChatGLM 2 and 3, GLM 4: grouped queries, one fused gate and up projection."""
    heads = fields.integer("num_attention_heads")
    groups = fields.flag("multi_query_attention", default=False)
    kv_heads = fields.integer("multi_query_group_num", default=1) if groups else heads
    shape = _shape(fields, heads, kv_heads=kv_heads)
    intermediate = fields.integer("ffn_hidden_size", default=13_696)
    bias = fields.flag("add_bias_linear", default=False)
    shifts = not fields.flag("rmsnorm", default=True)
    last = fields.flag("post_layer_norm", default=True)
    body: Weights = (
        attention(
            shape,
            qkv="self_attention.query_key_value",
            out="self_attention.dense",
            qkv_bias=bias or fields.flag("add_qkv_bias", default=False),
            out_bias=bias,
        )
        + gated_mlp(shape.hidden, intermediate, layers=shape.every, names=_MLP, bias=bias)
        + layer_norms(shape, bias=shifts)
    )
    return decoder(
        shape,
        body,
        layers=same_layers(shape, window=None),
        intermediate=intermediate,
        tied=fields.flag("tie_word_embeddings", default=False),
        ends=Ends(
            embed="embedding.word_embeddings",
            norm="encoder.final_layernorm" if last else None,
            norm_bias=shifts,
            head="output_layer",
        ),
    )


def _shape(fields: Fields, heads: int, *, kv_heads: int) -> DecoderShape:
    hidden = fields.integer("hidden_size")
    shape = DecoderShape(
        layers=fields.integer("num_layers", "num_hidden_layers", most=MAX_LAYERS),
        hidden=hidden,
        heads=heads,
        kv_heads=kv_heads,
        # The class states `kv_channels` beside it and computes with this.
        head_dim=split_evenly(fields, hidden, heads),
        vocab=fields.integer("padded_vocab_size", "vocab_size"),
    )
    return checked(fields, shape)
