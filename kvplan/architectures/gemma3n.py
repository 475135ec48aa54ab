"""The text part of Gemma 3n."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from kvplan.architectures.anatomy import Anatomy, decoder
from kvplan.architectures.blocks import (
    Weights,
    attention,
    gated_mlp,
    layer_norms,
    linear,
    norm,
    qk_norms,
    vector,
)
from kvplan.architectures.fields import MAX_DIMENSION, Fields
from kvplan.architectures.layers import (
    every_nth_full,
    grouped,
    read_layer_types,
    read_window,
    typed_layers,
)
from kvplan.architectures.per_layer import per_layer_weights, read_per_layer
from kvplan.architectures.shapes import DecoderShape, read_shape
from kvplan.architectures.sharing import own_keys, read_shared, shared_tail
from kvplan.models.weights import Place

_NORMS = (
    "input_layernorm",
    "post_attention_layernorm",
    "pre_feedforward_layernorm",
    "post_feedforward_layernorm",
)
# Nested files keep only what differs from the class.
_DEFAULTS: Mapping[str, int] = MappingProxyType(
    {
        "vocab_size": 262_400,
        "hidden_size": 2048,
        "num_hidden_layers": 35,
        "num_attention_heads": 8,
    }
)
_MOST_INPUTS = 64
# One matrix for each residual stream but the first, before the layers and after them.
_STREAMS: tuple[tuple[str, Place], ...] = (
    ("altup_projections", "embedding"),
    ("altup_unembed_projections", "head"),
)


def gemma3n_text(fields: Fields) -> Anatomy:
    """Gemma 3n: windows, every fifth layer full; the last layers read the cache of earlier ones."""
    shape = read_shape(fields, kv_heads=2, head_dim=256, defaults=_DEFAULTS)
    types = read_layer_types(fields, shape.layers) or every_nth_full(shape.layers, 5)
    shared = read_shared(fields, shape.layers, default=15)
    layers = typed_layers(fields, shape, types, window=read_window(fields, default=512))
    widths = _widths(fields, shape)
    body = (
        _attention(fields, shape, shape.layers - shared)
        + _feed_forwards(shape, widths)
        + layer_norms(shape, _NORMS)
        + _alternating_updates(fields, shape)
        + _learned_residual(fields, shape)
    )
    per_layer = read_per_layer(fields)
    if per_layer is not None:
        body += per_layer_weights(shape, per_layer)
    return decoder(
        shape,
        body,
        layers=shared_tail(fields, layers, types, shared),
        intermediate=max(widths),
        tied=fields.flag("tie_word_embeddings", default=True),
    )


def _attention(fields: Fields, shape: DecoderShape, own: int) -> Weights:
    """Layers from ``own`` on have queries and an output only."""
    bias = fields.flag("attention_bias", default=False)
    return own_keys(
        attention(shape, qkv_bias=bias, out_bias=bias)
        + qk_norms(shape, (shape.head_dim, shape.head_dim)),
        shape.every[:own],
    )


def _widths(fields: Fields, shape: DecoderShape) -> tuple[int, ...]:
    """Feed-forward of each layer: a list, or one number for all."""
    if not isinstance(fields.raw("intermediate_size"), list):
        return (fields.integer("intermediate_size", default=16_384),) * shape.layers
    stated = fields.integers("intermediate_size", least=1, most=MAX_DIMENSION) or ()
    if len(stated) != shape.layers:
        raise fields.conflict(f"`intermediate_size` lists {len(stated)} layers of {shape.layers}.")
    return stated


def _feed_forwards(shape: DecoderShape, widths: tuple[int, ...]) -> Weights:
    weights: Weights = ()
    for width, layers in grouped(widths).items():
        weights += gated_mlp(shape.hidden, width, layers=layers)
    return weights


def _alternating_updates(fields: Fields, shape: DecoderShape) -> Weights:
    """AltUp: several residual streams, of which a layer computes one and predicts the others."""
    inputs = fields.integer("altup_num_inputs", default=4, most=_MOST_INPUTS)
    hidden, every = shape.hidden, shape.every
    weights = vector("altup.correct_output_scale", hidden, component="other", layers=every)
    for name, size in (
        ("correction_coefs", (inputs, inputs)),
        ("prediction_coefs", (inputs * inputs, inputs)),
        ("modality_router", (inputs, hidden)),
    ):
        weights += linear(
            f"altup.{name}", size, component="other", sharding="replicated", layers=every
        )
    weights += norm("altup.router_norm", hidden, layers=every)
    for name, place in _STREAMS:
        for stream in range(inputs - 1):
            weights += linear(
                f"{name}.{stream}",
                (hidden, hidden),
                component="other",
                sharding="column",
                place=place,
            )
    return weights


def _learned_residual(fields: Fields, shape: DecoderShape) -> Weights:
    """LAuReL: a low-rank side path of each layer."""
    rank = fields.integer("laurel_rank", default=64)
    hidden, every = shape.hidden, shape.every
    return (
        linear(
            "laurel.linear_left",
            (rank, hidden),
            component="other",
            sharding="column",
            layers=every,
        )
        + linear(
            "laurel.linear_right",
            (hidden, rank),
            component="other",
            sharding="row",
            layers=every,
        )
        + norm("laurel.post_laurel_norm", hidden, layers=every)
    )
