"""Qwen 1.5, 2, 2.5 and 3: dense and mixture of experts."""

from __future__ import annotations

from kvplan.architectures.anatomy import Anatomy, decoder
from kvplan.architectures.blocks import (
    Weights,
    attention,
    experts,
    gated_mlp,
    layer_norms,
    linear,
    qk_norms,
    router,
)
from kvplan.architectures.fields import MAX_EXPERTS, MAX_LAYERS, Fields
from kvplan.architectures.layers import (
    FULL,
    SLIDING,
    read_layer_types,
    read_window,
    same_layers,
    typed_layers,
)
from kvplan.architectures.shapes import DecoderShape, read_shape
from kvplan.models.spec import Layer


def qwen2(fields: Fields) -> Anatomy:
    """Qwen 1.5, 2 and 2.5: biases on query, key and value."""
    shape = read_shape(fields, kv_heads=32)
    return _dense(fields, shape, attention(shape, qkv_bias=True))


def qwen3(fields: Fields) -> Anatomy:
    """Qwen 3: normalized queries and keys instead of biases."""
    shape = read_shape(fields, kv_heads=32, head_dim=128)
    return _dense(fields, shape, _normed_attention(fields, shape))


def qwen2_moe(fields: Fields) -> Anatomy:
    """Qwen 1.5 MoE and Qwen 2 MoE: a shared expert with a gate of its own."""
    shape = read_shape(fields, kv_heads=16)
    shared = fields.integer("shared_expert_intermediate_size", default=5632)
    sparse = _sparse_layers(fields, shape.layers)
    gate = linear(
        "mlp.shared_expert_gate",
        (1, shape.hidden),
        component="shared_experts",
        sharding="replicated",
        layers=sparse,
    )
    names = tuple(f"mlp.shared_expert.{part}_proj" for part in ("gate", "up", "down"))
    body = (
        attention(shape, qkv_bias=fields.flag("qkv_bias", default=True))
        + gated_mlp(shape.hidden, shared, layers=sparse, names=names, component="shared_experts")
        + gate
    )
    types = _alternating_types(fields, shape.layers)
    layers = typed_layers(fields, shape, types, window=_switched_window(fields))
    defaults = {"num_experts": 60, "num_experts_per_tok": 4, "moe_intermediate_size": 1408}
    return _sparse(fields, shape, body, sparse=sparse, layers=layers, defaults=defaults)


def qwen3_moe(fields: Fields) -> Anatomy:
    """Qwen 3 MoE."""
    shape = read_shape(fields, kv_heads=4)
    return _sparse(
        fields,
        shape,
        _normed_attention(fields, shape),
        sparse=_sparse_layers(fields, shape.layers),
        layers=same_layers(shape, window=_switched_window(fields)),
        defaults={"num_experts": 128, "num_experts_per_tok": 8, "moe_intermediate_size": 768},
    )


def _normed_attention(fields: Fields, shape: DecoderShape) -> Weights:
    bias = fields.flag("attention_bias", default=False)
    sizes = (shape.head_dim, shape.head_dim)
    return attention(shape, qkv_bias=bias, out_bias=bias) + qk_norms(shape, sizes)


def _dense(fields: Fields, shape: DecoderShape, projections: Weights) -> Anatomy:
    intermediate = fields.integer("intermediate_size")
    window = _switched_window(fields)
    types = _later_types(fields, shape.layers, window)
    return decoder(
        shape,
        projections
        + gated_mlp(shape.hidden, intermediate, layers=shape.every)
        + layer_norms(shape),
        layers=typed_layers(fields, shape, types, window=window),
        intermediate=intermediate,
        tied=fields.flag("tie_word_embeddings", default=False),
    )


def _sparse(
    fields: Fields,
    shape: DecoderShape,
    body: Weights,
    *,
    sparse: tuple[int, ...],
    layers: tuple[Layer, ...],
    defaults: dict[str, int],
) -> Anatomy:
    count = fields.integer("num_experts", default=defaults["num_experts"], most=MAX_EXPERTS)
    active = fields.integer(
        "num_experts_per_tok", default=defaults["num_experts_per_tok"], most=count
    )
    width = fields.integer("moe_intermediate_size", default=defaults["moe_intermediate_size"])
    dense = tuple(sorted(set(shape.every) - set(sparse)))
    dense_width = fields.integer("intermediate_size")
    return decoder(
        shape,
        body
        + gated_mlp(shape.hidden, dense_width, layers=dense)
        + experts(shape.hidden, width, count=count, active=active, layers=sparse)
        + router(shape.hidden, count, layers=sparse)
        + layer_norms(shape),
        layers=layers,
        intermediate=max(width if sparse else 0, dense_width if dense else 0),
        tied=fields.flag("tie_word_embeddings", default=False),
        experts=count,
        experts_per_token=active,
    )


def _sparse_layers(fields: Fields, layers: int) -> tuple[int, ...]:
    dense_only = set(fields.integers("mlp_only_layers", least=0, most=MAX_LAYERS) or ())
    step = fields.integer("decoder_sparse_step", default=1, most=MAX_LAYERS)
    return tuple(
        layer for layer in range(layers) if layer not in dense_only and (layer + 1) % step == 0
    )


def _switched_window(fields: Fields) -> int | None:
    if not fields.flag("use_sliding_window", default=False):
        return None
    return read_window(fields, default=4096)


def _later_types(fields: Fields, layers: int, window: int | None) -> tuple[str, ...]:
    stated = read_layer_types(fields, layers)
    if stated is not None:
        return stated
    if window is None:
        return (FULL,) * layers
    first = fields.integer("max_window_layers", default=28, least=0)
    return tuple(SLIDING if layer >= first else FULL for layer in range(layers))


def _alternating_types(fields: Fields, layers: int) -> tuple[str, ...]:
    stated = read_layer_types(fields, layers)
    if stated is not None:
        return stated
    if not fields.flag("use_sliding_window", default=False):
        return (FULL,) * layers
    last = fields.integer("max_window_layers", default=28, least=0)
    return tuple(SLIDING if layer % 2 == 0 and layer < last else FULL for layer in range(layers))
