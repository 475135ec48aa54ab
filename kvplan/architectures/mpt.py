"""MPT."""

from __future__ import annotations

from kvplan.architectures.anatomy import Anatomy, Ends, decoder
from kvplan.architectures.blocks import (
    Weights,
    attention,
    layer_norms,
    plain_mlp,
    positions,
    qk_norms,
)
from kvplan.architectures.fields import MAX_LAYERS, Fields
from kvplan.architectures.layers import same_layers
from kvplan.architectures.shapes import DecoderShape, checked, split_evenly

_MOST_RATIO = 1024


def mpt(fields: Fields) -> Anatomy:
    """MPT 7B and 30B: ALiBi, no biases; some checkpoints of the type share their KV heads.

    transformers' class knows multi-head attention without biases only; the rest is read by
    ``mosaicml/llm-foundry@34c28fc9:llmfoundry/models/mpt/modeling_mpt.py``.
    """
    rules = fields.section("attn_config") or fields
    shape = _shape(fields, rules)
    ratio = fields.integer("expansion_ratio", default=4, most=_MOST_RATIO)
    bias = not fields.flag("no_bias", default=True)
    return decoder(
        shape,
        _positions(fields, rules, shape.hidden)
        + attention(shape, qkv="attn.Wqkv", out="attn.out_proj", qkv_bias=bias, out_bias=bias)
        + _qk_norms(rules, shape)
        + plain_mlp(
            shape.hidden,
            ratio * shape.hidden,
            layers=shape.every,
            names=("ffn.up_proj", "ffn.down_proj"),
            bias=bias,
        )
        + layer_norms(shape, ("norm_1", "norm_2"), bias=bias),
        layers=same_layers(shape, window=None),
        intermediate=ratio * shape.hidden,
        tied=fields.flag("tie_word_embeddings", default=True),
        ends=Ends(embed="wte", norm="norm_f", norm_bias=bias),
    )


def _shape(fields: Fields, rules: Fields) -> DecoderShape:
    hidden = fields.integer("d_model", "hidden_size")
    heads = fields.integer("n_heads", "num_attention_heads")
    shape = DecoderShape(
        layers=fields.integer("n_layers", "num_hidden_layers", most=MAX_LAYERS),
        hidden=hidden,
        heads=heads,
        kv_heads=_kv_heads(rules, heads),
        head_dim=split_evenly(fields, hidden, heads),
        vocab=fields.integer("vocab_size"),
    )
    return checked(fields, shape)


def _kv_heads(rules: Fields, heads: int) -> int:
    match rules.optional_text("attn_type"):
        case "multiquery_attention":
            return 1
        case "grouped_query_attention":
            return rules.integer("kv_n_heads")
        case _:
            return heads


def _positions(fields: Fields, rules: Fields, hidden: int) -> Weights:
    if not fields.flag("learned_pos_emb", default=True) or rules.flag("alibi", default=True):
        return ()
    return positions(fields.integer("max_seq_len", default=2048), hidden, "wpe")


def _qk_norms(rules: Fields, shape: DecoderShape) -> Weights:
    if not rules.flag("qk_ln", default=False):
        return ()
    sizes = (shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim)
    return qk_norms(shape, sizes, names=("attn.q_ln", "attn.k_ln"))
