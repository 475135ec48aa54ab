"""Laguna."""

from __future__ import annotations

from kvplan.architectures.anatomy import Anatomy, decoder
from kvplan.architectures.blocks import (
    Weights,
    attention,
    layer_norms,
    linear,
    qk_norms,
    vector,
)
from kvplan.architectures.fields import MAX_EXPERTS, Fields
from kvplan.architectures.layers import FULL, grouped, read_layer_types, read_window, typed_layers
from kvplan.architectures.shapes import DecoderShape, checked, read_shape
from kvplan.architectures.sparse import Sparse, dense_and_sparse, listed_sparse

_SHARED = tuple(f"mlp.shared_expert.{part}_proj" for part in ("gate", "up", "down"))


def laguna(fields: Fields) -> Anatomy:
    """Laguna XS, S and M: gated attention whose query heads may differ from layer to layer."""
    shape = read_shape(fields, kv_heads=8, head_dim=128)
    sparse = _sparse(fields, shape)
    types = read_layer_types(fields, shape.layers) or (FULL,) * shape.layers
    return decoder(
        shape,
        _attention(fields, shape)
        + qk_norms(shape, (shape.head_dim, shape.head_dim))
        + dense_and_sparse(shape, sparse, shared=_SHARED)
        # Unlike the routing biases of other classes, this one is a parameter.
        + vector(
            "mlp.experts.e_score_correction_bias",
            sparse.experts,
            component="router",
            layers=sparse.sparse_layers,
        )
        + layer_norms(shape),
        layers=typed_layers(fields, shape, types, window=read_window(fields, default=512)),
        intermediate=sparse.widest,
        tied=fields.flag("tie_word_embeddings", default=False),
        experts=sparse.experts,
        experts_per_token=sparse.active,
    )


def _attention(fields: Fields, shape: DecoderShape) -> Weights:
    bias = fields.flag("attention_bias", default=False)
    gate_size = 1 if _gated_by_head(fields) else shape.head_dim
    weights: Weights = ()
    for heads, layers in _layers_by_heads(fields, shape).items():
        part = checked(fields, shape.model_copy(update={"heads": heads}))
        weights += attention(part, qkv_bias=bias, out_bias=bias, layers=layers)
        weights += linear(
            "self_attn.g_proj",
            (heads * gate_size, shape.hidden),
            component="attention",
            sharding="column",
            layers=layers,
        )
    return weights


def _gated_by_head(fields: Fields) -> bool:
    gating = fields.raw("gating")
    if isinstance(gating, str):
        return gating == "per-head"
    return fields.flag("gating", default=True)


def _layers_by_heads(fields: Fields, shape: DecoderShape) -> dict[int, tuple[int, ...]]:
    stated = fields.integers("num_attention_heads_per_layer", least=1, most=2**16)
    if stated is None:
        return {shape.heads: shape.every}
    if len(stated) != shape.layers:
        raise fields.conflict(
            f"`num_attention_heads_per_layer` lists {len(stated)} layers of {shape.layers}."
        )
    return grouped(stated)


def _sparse(fields: Fields, shape: DecoderShape) -> Sparse:
    stated = listed_sparse(fields, shape)
    layers = shape.every[1:] if stated is None else stated
    count = fields.integer("num_experts", default=256, most=MAX_EXPERTS)
    return Sparse(
        dense_layers=tuple(sorted(set(shape.every) - set(layers))),
        sparse_layers=layers,
        dense_width=fields.integer("intermediate_size"),
        experts=count,
        active=fields.integer("num_experts_per_tok", default=8, most=count),
        expert_width=fields.integer("moe_intermediate_size", default=512),
        shared_width=fields.integer("shared_expert_intermediate_size", default=512),
    )
