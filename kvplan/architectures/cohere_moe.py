"""Cohere 2 with experts: North Mini Code."""

from __future__ import annotations

from kvplan.architectures.anatomy import Anatomy, decoder
from kvplan.architectures.blocks import attention, layer_norms
from kvplan.architectures.fields import MAX_EXPERTS, MAX_LAYERS, Fields
from kvplan.architectures.layers import (
    every_nth_full,
    read_layer_types,
    read_window,
    typed_layers,
)
from kvplan.architectures.shapes import DecoderShape, read_shape
from kvplan.architectures.sparse import Sparse, dense_and_sparse, listed_sparse


def cohere2_moe(fields: Fields) -> Anatomy:
    """Cohere 2's attention (three windowed layers, then a full one) and experts."""
    shape = read_shape(fields, head_dim=128)
    first = fields.integer("first_k_dense_replace", default=0, least=0, most=MAX_LAYERS)
    sparse = _sparse(fields, shape, first)
    bias = fields.flag("attention_bias", default=False)
    return decoder(
        shape,
        attention(shape, qkv_bias=bias, out_bias=bias)
        + dense_and_sparse(shape, sparse)
        # Attention and feed-forward read the same normalized input.
        + layer_norms(shape, ("input_layernorm",)),
        layers=typed_layers(
            fields, shape, _types(fields, shape, first), window=read_window(fields, default=4096)
        ),
        intermediate=sparse.widest,
        tied=fields.flag("tie_word_embeddings", default=True),
        experts=sparse.experts,
        experts_per_token=sparse.active,
    )


def _types(fields: Fields, shape: DecoderShape, first: int) -> tuple[str, ...]:
    stated = read_layer_types(fields, shape.layers)
    if stated is not None:
        return stated
    dense = min(first, shape.layers)
    prefix = fields.integer("prefix_dense_sliding_window_pattern", default=1, most=MAX_LAYERS)
    period = fields.integer("sliding_window_pattern", default=4, most=MAX_LAYERS)
    return every_nth_full(dense, prefix) + every_nth_full(shape.layers - dense, period)


def _sparse(fields: Fields, shape: DecoderShape, first: int) -> Sparse:
    stated = listed_sparse(fields, shape)
    layers = shape.every[first:] if stated is None else stated
    dense = tuple(sorted(set(shape.every) - set(layers)))
    width = fields.integer("intermediate_size")
    count = fields.integer("num_experts", default=8, most=MAX_EXPERTS)
    shared = fields.integer("num_shared_experts", default=0, least=0, most=MAX_EXPERTS)
    return Sparse(
        dense_layers=dense,
        sparse_layers=layers,
        dense_width=fields.integer("prefix_dense_intermediate_size") if dense else width,
        experts=count,
        active=fields.integer("num_experts_per_tok", default=2, most=count),
        expert_width=width,
        shared_width=width * shared,
    )
