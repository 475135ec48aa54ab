"""The text part of Gemma 4."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from kvplan.architectures.anatomy import Anatomy, decoder
from kvplan.architectures.blocks import (
    Weights,
    attention,
    experts,
    gated_mlp,
    layer_norms,
    qk_norms,
    router,
    vector,
)
from kvplan.architectures.fields import MAX_EXPERTS, Fields
from kvplan.architectures.layers import (
    FULL,
    SLIDING,
    every_nth_full,
    mixed_layers,
    read_layer_types,
    read_window,
)
from kvplan.architectures.per_layer import per_layer_weights, read_per_layer
from kvplan.architectures.shapes import DecoderShape, checked, read_shape
from kvplan.architectures.sharing import own_keys, read_shared, shared_tail

_NORMS = (
    "input_layernorm",
    "post_attention_layernorm",
    "pre_feedforward_layernorm",
    "post_feedforward_layernorm",
)
_SPARSE_NORMS = (
    "post_feedforward_layernorm_1",
    "post_feedforward_layernorm_2",
    "pre_feedforward_layernorm_2",
)
# One tensor holds all experts of a layer.
_ROUTED = ("experts.gate_up_proj", "experts.down_proj")
# Nested files keep only what differs from the class.
_DEFAULTS: Mapping[str, int] = MappingProxyType(
    {
        "vocab_size": 262_144,
        "hidden_size": 2304,
        "num_hidden_layers": 30,
        "num_attention_heads": 8,
    }
)


def gemma4_text(fields: Fields) -> Anatomy:
    """Gemma 4: windowed and full layers with heads of their own size, a tail that shares caches."""
    shape = read_shape(fields, kv_heads=4, head_dim=256, defaults=_DEFAULTS)
    types = _types(fields, shape)
    shared = read_shared(fields, shape.layers, default=0)
    full = _full_shape(fields, shape, types)
    window = read_window(fields, default=512)
    if fields.optional_text("use_bidirectional_attention") == "all" and window is not None:
        window = window // 2 + 1
    layers = mixed_layers(fields, types, full=full, sliding=shape, window=window)
    width = fields.integer("intermediate_size", default=9216)
    double = fields.flag("use_double_wide_mlp", default=False)
    own = shape.every[: shape.layers - shared]
    rest = shape.every[shape.layers - shared :]
    count, active = _experts(fields)
    body = (
        own_keys(_attention(fields, shape, full, types), own)
        + gated_mlp(shape.hidden, width, layers=own)
        + gated_mlp(shape.hidden, 2 * width if double else width, layers=rest)
        + _sparse(fields, shape, count, active)
        + layer_norms(shape, _NORMS)
        # Kept as a buffer: on disk and loaded, but not trained.
        + vector("layer_scalar", 1, component="other", layers=shape.every)
    )
    per_layer = read_per_layer(fields)
    if per_layer is not None:
        body += per_layer_weights(shape, per_layer)
    return decoder(
        shape,
        body,
        layers=shared_tail(fields, layers, types, shared),
        intermediate=2 * width if double and shared else width,
        tied=fields.flag("tie_word_embeddings", default=True),
        experts=count,
        experts_per_token=active,
    )


def _types(fields: Fields, shape: DecoderShape) -> tuple[str, ...]:
    types = read_layer_types(fields, shape.layers) or every_nth_full(shape.layers, 6)
    return (*types[:-1], FULL)  # the class makes the last layer full whatever the file says


def _full_shape(fields: Fields, shape: DecoderShape, types: tuple[str, ...]) -> DecoderShape:
    """Heads of the full layers: stated by two fields, or layer by layer in newer files."""
    stated = fields.section("per_layer_config")
    if stated is not None:
        first = types.index(FULL)
        for name in stated.names():
            if name.isascii() and name.isdigit() and int(name) == first:
                return _overridden(fields, stated.section(name) or stated, shape)
        return shape
    update = {"head_dim": fields.integer("global_head_dim", default=512)}
    if fields.flag("attention_k_eq_v", default=False):
        kv_heads = fields.optional_integer("num_global_key_value_heads")
        update["kv_heads"] = kv_heads or shape.kv_heads
    return checked(fields, shape.model_copy(update=update))


def _overridden(fields: Fields, layer: Fields, shape: DecoderShape) -> DecoderShape:
    update = {
        "head_dim": layer.optional_integer("head_dim") or shape.head_dim,
        "kv_heads": layer.optional_integer("num_key_value_heads") or shape.kv_heads,
    }
    return checked(fields, shape.model_copy(update=update))


def _attention(
    fields: Fields, shape: DecoderShape, full: DecoderShape, types: tuple[str, ...]
) -> Weights:
    bias = fields.flag("attention_bias", default=False)
    weights: Weights = ()
    for part, kind in ((shape, SLIDING), (full, FULL)):
        layers = tuple(layer for layer in shape.every if types[layer] == kind)
        weights += attention(part, qkv_bias=bias, out_bias=bias, layers=layers)
        weights += qk_norms(part, (part.head_dim, part.head_dim), layers=layers)
    if not fields.flag("attention_k_eq_v", default=False):
        return weights
    # The full layers use their keys as values: no projection of its own on disk.
    windowed = tuple(layer for layer in shape.every if types[layer] == SLIDING)
    return tuple(
        weight
        for weight in weights
        if "v_proj" not in weight.name or set(weight.layers) <= set(windowed)
    )


def _experts(fields: Fields) -> tuple[int, int]:
    if not fields.flag("enable_moe_block", default=False):
        return 0, 0
    count = fields.integer("num_experts", most=MAX_EXPERTS)
    return count, fields.integer("top_k_experts", most=count)


def _sparse(fields: Fields, shape: DecoderShape, count: int, active: int) -> Weights:
    """Experts beside the feed-forward of every layer."""
    if not count:
        return ()
    width = fields.integer("moe_intermediate_size", "expert_intermediate_size")
    hidden, every = shape.hidden, shape.every
    return (
        experts(hidden, width, count=count, active=active, layers=every, names=_ROUTED)
        + router(hidden, count, layers=every, name="router.proj")
        + vector("router.scale", hidden, component="router", layers=every)
        + vector("router.per_expert_scale", count, component="router", layers=every)
        + layer_norms(shape, _SPARSE_NORMS)
    )
