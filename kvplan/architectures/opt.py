"""OPT."""

from __future__ import annotations

from kvplan.architectures.anatomy import Anatomy
from kvplan.architectures.blocks import (
    Weights,
    attention,
    embedding,
    final_norm,
    head,
    layer_norms,
    linear,
    plain_mlp,
    positions,
)
from kvplan.architectures.fields import MAX_LAYERS, Fields
from kvplan.architectures.layers import same_layers
from kvplan.architectures.shapes import DecoderShape, split_evenly

# The table of positions starts at 2: transformers v5.24.0 src/transformers/models/opt/
# modeling_opt.py OPTLearnedPositionalEmbedding.
_POSITION_OFFSET = 2


def opt(fields: Fields) -> Anatomy:
    """All sizes; 350M projects its narrow embedding up and down again."""
    shape = _shape(fields)
    intermediate = fields.integer("ffn_dim")
    tied = fields.flag("tie_word_embeddings", default=True)
    width = fields.integer("word_embed_proj_dim", default=shape.hidden)
    weights = (
        embedding(shape, width=width)
        + positions(
            fields.integer("max_position_embeddings") + _POSITION_OFFSET,
            shape.hidden,
            "embed_positions",
        )
        + _body(fields, shape, intermediate)
        + _projections(shape.hidden, width)
        + head(shape, tied=tied, width=width)
    )
    return Anatomy(
        hidden_size=shape.hidden,
        vocab_size=shape.vocab,
        intermediate_size=intermediate,
        attention_heads=shape.heads,
        layers=same_layers(shape, window=None),
        tied=tied,
        weights=weights,
    )


def _shape(fields: Fields) -> DecoderShape:
    hidden = fields.integer("hidden_size")
    heads = fields.integer("num_attention_heads")
    return DecoderShape(
        layers=fields.integer("num_hidden_layers", most=MAX_LAYERS),
        hidden=hidden,
        heads=heads,
        kv_heads=heads,
        head_dim=split_evenly(fields, hidden, heads),
        vocab=fields.integer("vocab_size"),
    )


def _body(fields: Fields, shape: DecoderShape, intermediate: int) -> Weights:
    bias = fields.flag("enable_bias", default=True)
    body = attention(
        shape,
        out="self_attn.out_proj",
        qkv_bias=bias,
        out_bias=bias,
    ) + plain_mlp(shape.hidden, intermediate, layers=shape.every, names=("fc1", "fc2"), bias=bias)
    if not fields.flag("layer_norm_elementwise_affine", default=True):
        return body
    body += layer_norms(shape, ("self_attn_layer_norm", "final_layer_norm"), bias=True)
    before = fields.flag("do_layer_norm_before", default=True)
    if before and not fields.flag("_remove_final_layer_norm", default=False):
        body += final_norm(shape.hidden, "decoder.final_layer_norm", bias=True)
    return body


def _projections(hidden: int, width: int) -> Weights:
    if width == hidden:
        return ()
    return linear(
        "project_in",
        (hidden, width),
        component="embedding",
        sharding="replicated",
        place="embedding",
    ) + linear(
        "project_out",
        (width, hidden),
        component="lm_head",
        sharding="replicated",
        place="head",
    )
