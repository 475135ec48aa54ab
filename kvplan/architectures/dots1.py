"""dots.llm1."""

from __future__ import annotations

from kvplan.architectures.anatomy import Anatomy, decoder
from kvplan.architectures.blocks import attention, layer_norms, qk_norms
from kvplan.architectures.fields import Fields
from kvplan.architectures.layers import (
    FULL,
    SLIDING,
    read_layer_types,
    read_window,
    typed_layers,
)
from kvplan.architectures.shapes import DecoderShape, read_shape
from kvplan.architectures.sparse import dense_and_sparse, read_sparse

_DEFAULTS = {"first_k_dense_replace": 0, "n_shared_experts": 0}


def dots1(fields: Fields) -> Anatomy:
    """dots.llm1: as many KV heads as heads, normalized queries and keys, shared experts."""
    shape = read_shape(fields, kv_heads=32)
    sparse = read_sparse(fields, shape, _DEFAULTS)
    bias = fields.flag("attention_bias", default=False)
    window = read_window(fields, default=4096)
    return decoder(
        shape,
        attention(shape, qkv_bias=bias, out_bias=bias)
        + qk_norms(shape, (shape.head_dim, shape.head_dim))
        + dense_and_sparse(shape, sparse)
        + layer_norms(shape),
        layers=typed_layers(fields, shape, _types(fields, shape, window), window=window),
        intermediate=sparse.widest,
        tied=fields.flag("tie_word_embeddings", default=False),
        experts=sparse.experts,
        experts_per_token=sparse.active,
    )


def _types(fields: Fields, shape: DecoderShape, window: int | None) -> tuple[str, ...]:
    stated = read_layer_types(fields, shape.layers)
    if stated is not None:
        return stated
    if window is None:
        return (FULL,) * shape.layers
    first = fields.integer("max_window_layers", default=62, least=0)
    return tuple(SLIDING if layer >= first else FULL for layer in shape.every)
