"""Gemma 1, 2 and the text part of Gemma 3."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from kvplan.architectures.anatomy import Anatomy, decoder
from kvplan.architectures.blocks import (
    Weights,
    attention,
    gated_mlp,
    layer_norms,
    qk_norms,
)
from kvplan.architectures.fields import Fields
from kvplan.architectures.layers import (
    every_nth_full,
    read_layer_types,
    read_pattern,
    read_window,
    same_layers,
    typed_layers,
)
from kvplan.architectures.shapes import DecoderShape, read_shape
from kvplan.models.spec import Layer

_FOUR_NORMS = (
    "input_layernorm",
    "post_attention_layernorm",
    "pre_feedforward_layernorm",
    "post_feedforward_layernorm",
)
# Nested files keep only what differs from the class: Gemma 3 4B states neither its heads nor
# its vocabulary.
_GEMMA3: Mapping[str, int] = MappingProxyType(
    {
        "vocab_size": 262_208,
        "hidden_size": 2304,
        "intermediate_size": 9216,
        "num_hidden_layers": 26,
        "num_attention_heads": 8,
    }
)


def gemma(fields: Fields) -> Anatomy:
    """Gemma 1: heads of 256 elements whatever the hidden size."""
    shape = read_shape(fields, kv_heads=16, head_dim=256)
    return _assemble(
        fields,
        shape,
        _projections(fields, shape) + layer_norms(shape),
        layers=same_layers(shape, window=None),
        intermediate=fields.integer("intermediate_size"),
    )


def gemma2(fields: Fields) -> Anatomy:
    """Gemma 2: windowed and full layers in turn, four normalizations a layer."""
    shape = read_shape(fields, kv_heads=4, head_dim=256)
    types = read_layer_types(fields, shape.layers) or every_nth_full(shape.layers, 2)
    window = read_window(fields, default=4096)
    return _assemble(
        fields,
        shape,
        _projections(fields, shape) + layer_norms(shape, _FOUR_NORMS),
        layers=typed_layers(fields, shape, types, window=window),
        intermediate=fields.integer("intermediate_size"),
    )


def gemma3_text(fields: Fields) -> Anatomy:
    """Gemma 3: every sixth layer is full, queries and keys are normalized."""
    shape = read_shape(fields, kv_heads=4, head_dim=256, defaults=_GEMMA3)
    types = read_pattern(fields, shape.layers, default=6)
    return _assemble(
        fields,
        shape,
        _projections(fields, shape)
        + qk_norms(shape, (shape.head_dim, shape.head_dim))
        + layer_norms(shape, _FOUR_NORMS),
        layers=typed_layers(fields, shape, types, window=_gemma3_window(fields)),
        intermediate=fields.integer("intermediate_size", default=_GEMMA3["intermediate_size"]),
    )


def _gemma3_window(fields: Fields) -> int | None:
    window = read_window(fields, default=4096)
    if window is not None and fields.flag("use_bidirectional_attention", default=False):
        return window // 2 + 1
    return window


def _projections(fields: Fields, shape: DecoderShape) -> Weights:
    bias = fields.flag("attention_bias", default=False)
    return attention(shape, qkv_bias=bias, out_bias=bias)


def _assemble(
    fields: Fields,
    shape: DecoderShape,
    body: Weights,
    *,
    layers: tuple[Layer, ...],
    intermediate: int,
) -> Anatomy:
    return decoder(
        shape,
        body + gated_mlp(shape.hidden, intermediate, layers=shape.every),
        layers=layers,
        intermediate=intermediate,
        tied=fields.flag("tie_word_embeddings", default=True),
    )
