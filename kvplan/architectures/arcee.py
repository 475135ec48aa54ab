"""Arcee: AFM 4.5B (arcee) and Trinity (afmoe)."""

from __future__ import annotations

from kvplan.architectures.anatomy import Anatomy, decoder
from kvplan.architectures.blocks import (
    Weights,
    attention,
    layer_norms,
    linear,
    plain_mlp,
    qk_norms,
    vector,
)
from kvplan.architectures.fields import MAX_EXPERTS, MAX_LAYERS, Fields
from kvplan.architectures.layers import (
    every_nth_full,
    read_layer_types,
    read_window,
    same_layers,
    typed_layers,
)
from kvplan.architectures.shapes import DecoderShape, read_shape
from kvplan.architectures.sparse import Sparse, dense_and_sparse

_NORMS = (
    "input_layernorm",
    "post_attention_layernorm",
    "pre_mlp_layernorm",
    "post_mlp_layernorm",
)


def arcee(fields: Fields) -> Anatomy:
    """AFM 4.5B: Llama's attention, an ungated feed-forward."""
    shape = read_shape(fields)
    intermediate = fields.integer("intermediate_size")
    bias = fields.flag("attention_bias", default=False)
    return decoder(
        shape,
        attention(shape, qkv_bias=bias, out_bias=bias)
        + plain_mlp(
            shape.hidden,
            intermediate,
            layers=shape.every,
            names=("mlp.up_proj", "mlp.down_proj"),
            bias=fields.flag("mlp_bias", default=False),
        )
        + layer_norms(shape),
        layers=same_layers(shape, window=None),
        intermediate=intermediate,
        tied=fields.flag("tie_word_embeddings", default=False),
    )


def afmoe(fields: Fields) -> Anatomy:
    """Trinity: windowed and full layers, gated attention, experts behind the first layers."""
    shape = read_shape(fields, head_dim=128)
    sparse = _sparse(fields, shape)
    return decoder(
        shape,
        _gated_attention(fields, shape)
        + dense_and_sparse(shape, sparse, gate="mlp.router.gate")
        + vector("mlp.expert_bias", sparse.experts, component="router", layers=sparse.sparse_layers)
        + layer_norms(shape, _NORMS),
        layers=typed_layers(
            fields, shape, _types(fields, shape), window=read_window(fields, default=1024)
        ),
        intermediate=sparse.widest,
        tied=fields.flag("tie_word_embeddings", default=False),
        experts=sparse.experts,
        experts_per_token=sparse.active,
    )


def _gated_attention(fields: Fields, shape: DecoderShape) -> Weights:
    bias = fields.flag("attention_bias", default=False)
    gate = linear(
        "self_attn.gate_proj",
        (shape.heads * shape.head_dim, shape.hidden),
        component="attention",
        sharding="column",
        layers=shape.every,
    )
    norms = qk_norms(shape, (shape.head_dim, shape.head_dim))
    return attention(shape, qkv_bias=bias, out_bias=bias) + gate + norms


def _types(fields: Fields, shape: DecoderShape) -> tuple[str, ...]:
    stated = read_layer_types(fields, shape.layers)
    if stated is not None:
        return stated
    period = fields.integer("global_attn_every_n_layers", default=4, most=MAX_LAYERS)
    return every_nth_full(shape.layers, period)


def _sparse(fields: Fields, shape: DecoderShape) -> Sparse:
    dense = fields.integer("num_dense_layers", default=1, least=0, most=MAX_LAYERS)
    count = fields.integer("num_experts", default=64, most=MAX_EXPERTS)
    width = fields.integer("moe_intermediate_size", default=1408)
    shared = fields.integer("num_shared_experts", default=2, least=0, most=MAX_EXPERTS)
    return Sparse(
        dense_layers=shape.every[:dense],
        sparse_layers=shape.every[dense:],
        dense_width=fields.integer("intermediate_size"),
        experts=count,
        active=fields.integer("num_experts_per_tok", default=6, most=count),
        expert_width=width,
        shared_width=width * shared,
    )
