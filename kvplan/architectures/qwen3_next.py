"""Qwen3-Next and the text part of Qwen 3.5 and 3.6: three linear layers to one of attention."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from kvplan.architectures.anatomy import Anatomy, decoder
from kvplan.architectures.blocks import (
    Weights,
    attention,
    experts,
    gated_mlp,
    layer_norms,
    linear,
    norm,
    qk_norms,
    router,
)
from kvplan.architectures.delta_net import (
    DeltaNet,
    delta_net_cache,
    delta_net_fused,
    delta_net_split,
    read_delta_net,
)
from kvplan.architectures.fields import MAX_EXPERTS, MAX_LAYERS, Fields
from kvplan.architectures.recurrent import full_cache, placed, read_kinds, where
from kvplan.architectures.shapes import DecoderShape, read_shape
from kvplan.models.spec import Layer

_LINEAR, _FULL = "linear_attention", "full_attention"
_KINDS: Mapping[str, str] = MappingProxyType({_LINEAR: _LINEAR, _FULL: _FULL, "attention": _FULL})
_SHARED = tuple(f"mlp.shared_expert.{part}_proj" for part in ("gate", "up", "down"))
_MOST_MODULES = 100


class _Parts(NamedTuple):
    """What one layer has beside its linear attention, in every layer."""

    attention: Weights
    dense: Weights
    sparse: Weights
    norms: Weights


class _Experts(NamedTuple):
    routed: int
    active: int
    width: int
    shared: int


def qwen3_next(fields: Fields) -> Anatomy:
    """Qwen3-Next: experts in every layer unless the file says otherwise."""
    shape = read_shape(fields, kv_heads=2, head_dim=256)
    sizes = read_delta_net(fields)
    sparse = _sparse_layers(fields, shape.layers)
    moe = _experts(fields, count=512, active=10) if sparse else None
    width = fields.integer("intermediate_size", default=5632) if len(sparse) < shape.layers else 0
    kinds = _kinds(fields, shape.layers)
    mixers = delta_net_fused(sizes, shape.hidden, where(kinds, _LINEAR))
    return _assemble(fields, shape, mixers, sizes, kinds=kinds, sparse=sparse, moe=moe, width=width)


def qwen3_5_text(fields: Fields) -> Anatomy:
    """Qwen 3.5 and 3.6, dense."""
    shape = read_shape(fields, kv_heads=4, head_dim=256)
    sizes = read_delta_net(fields)
    kinds = _kinds(fields, shape.layers)
    mixers = delta_net_split(sizes, shape.hidden, where(kinds, _LINEAR))
    width = fields.integer("intermediate_size", default=12_288)
    return _assemble(fields, shape, mixers, sizes, kinds=kinds, sparse=(), moe=None, width=width)


def qwen3_5_moe_text(fields: Fields) -> Anatomy:
    """Qwen 3.5 and 3.6 with experts in every layer."""
    shape = read_shape(fields, kv_heads=2, head_dim=256)
    sizes = read_delta_net(fields)
    kinds = _kinds(fields, shape.layers)
    mixers = delta_net_split(sizes, shape.hidden, where(kinds, _LINEAR))
    moe = _experts(fields, count=256, active=8)
    return _assemble(
        fields, shape, mixers, sizes, kinds=kinds, sparse=shape.every, moe=moe, width=0
    )


def gated_attention(shape: DecoderShape, layers: tuple[int, ...], *, bias: bool) -> Weights:
    """Attention whose query projection also makes a gate for the output."""
    query = linear(
        "self_attn.q_proj",
        (2 * shape.heads * shape.head_dim, shape.hidden),
        component="attention",
        sharding="column",
        layers=layers,
        bias=bias,
    )
    plain = attention(shape, qkv_bias=bias, out_bias=bias, layers=layers)
    norms = placed(qk_norms(shape, (shape.head_dim, shape.head_dim)), layers)
    return query + plain[len(query) :] + norms


def _assemble(
    fields: Fields,
    shape: DecoderShape,
    mixers: Weights,
    sizes: DeltaNet,
    *,
    kinds: tuple[str, ...],
    sparse: tuple[int, ...],
    moe: _Experts | None,
    width: int,
) -> Anatomy:
    bias = fields.flag("attention_bias", default=False)
    parts = _Parts(
        attention=gated_attention(shape, shape.every, bias=bias),
        dense=gated_mlp(shape.hidden, width, layers=shape.every) if width else (),
        sparse=_sparse(shape, moe) if moe else (),
        norms=layer_norms(shape),
    )
    dense = tuple(layer for layer in shape.every if layer not in set(sparse))
    body = mixers + placed(parts.attention, where(kinds, _FULL)) + placed(parts.dense, dense)
    body += placed(parts.sparse, sparse) + parts.norms
    layer = {
        _LINEAR: Layer(caches=(delta_net_cache(sizes),)),
        _FULL: Layer(caches=(full_cache(shape),)),
    }
    return decoder(
        shape,
        body + _drafts(fields, shape, parts),
        layers=tuple(layer[kind] for kind in kinds),
        intermediate=max(width, moe.width if moe else 0),
        tied=fields.flag("tie_word_embeddings", default=False),
        experts=moe.routed if moe else 0,
        experts_per_token=moe.active if moe else 0,
    )


def _sparse(shape: DecoderShape, moe: _Experts) -> Weights:
    hidden, every = shape.hidden, shape.every
    gate = linear(
        "mlp.shared_expert_gate",
        (1, hidden),
        component="shared_experts",
        sharding="replicated",
        layers=every,
    )
    return (
        experts(hidden, moe.width, count=moe.routed, active=moe.active, layers=every)
        + gated_mlp(hidden, moe.shared, layers=every, names=_SHARED, component="shared_experts")
        + gate
        + router(hidden, moe.routed, layers=every)
    )


def _drafts(fields: Fields, shape: DecoderShape, parts: _Parts) -> Weights:
    """Modules for multi-token prediction: attention layers behind one projection.

    vLLM v0.33.0 vllm/model_executor/models/qwen3_next_mtp.py and qwen3_5_mtp.py; embedding and
    head are the decoder's own.
    """
    count = fields.optional_integer(
        "mtp_num_hidden_layers", "num_nextn_predict_layers", least=0, most=_MOST_MODULES
    )
    if not count:
        return ()
    modules = tuple(range(shape.layers, shape.layers + count))
    block = parts.attention + (parts.sparse or parts.dense) + parts.norms
    weights = tuple(
        weight.model_copy(update={"component": "mtp"}) for weight in placed(block, modules)
    )
    first = modules[:1]
    for name in ("norm", "pre_fc_norm_hidden", "pre_fc_norm_embedding"):
        weights += norm(name, shape.hidden, layers=first, component="mtp")
    return weights + linear(
        "fc",
        (shape.hidden, 2 * shape.hidden),
        component="mtp",
        sharding="column",
        layers=first,
    )


def _kinds(fields: Fields, layers: int) -> tuple[str, ...]:
    stated = read_kinds(fields, "layer_types", layers, _KINDS)
    if stated is not None:
        return stated
    period = fields.integer("full_attention_interval", default=4, most=MAX_LAYERS)
    return tuple(_LINEAR if (layer + 1) % period else _FULL for layer in range(layers))


def _sparse_layers(fields: Fields, layers: int) -> tuple[int, ...]:
    dense_only = set(fields.integers("mlp_only_layers", least=0, most=MAX_LAYERS) or ())
    step = fields.integer("decoder_sparse_step", default=1, most=MAX_LAYERS)
    return tuple(
        layer for layer in range(layers) if layer not in dense_only and (layer + 1) % step == 0
    )


def _experts(fields: Fields, *, count: int, active: int) -> _Experts:
    total = fields.integer("num_experts", default=count, most=MAX_EXPERTS)
    return _Experts(
        routed=total,
        active=fields.integer("num_experts_per_tok", default=active, most=total),
        width=fields.integer("moe_intermediate_size", default=512),
        shared=fields.integer("shared_expert_intermediate_size", default=512),
    )
