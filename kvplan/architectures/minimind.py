"""MiniMind."""

from __future__ import annotations

from kvplan.architectures.anatomy import Anatomy, Ends, decoder
from kvplan.architectures.blocks import (
    Weights,
    attention,
    experts,
    gated_mlp,
    layer_norms,
    router,
)
from kvplan.architectures.fields import MAX_EXPERTS, MAX_LAYERS, Fields
from kvplan.architectures.layers import same_layers
from kvplan.architectures.shapes import DecoderShape, checked, split_evenly

_QKV = ("attention.wq", "attention.wk", "attention.wv")
_PARTS = ("w1", "w3", "w2")


def minimind(fields: Fields) -> Anatomy:
    """MiniMind 2 in its own form, dense or with experts; the head is the embedding."""
    shape = _shape(fields)
    width = _width(fields, shape.hidden)
    count = active = 0
    if fields.flag("use_moe", default=False):
        count = fields.integer("n_routed_experts", default=4, most=MAX_EXPERTS)
        active = fields.integer("num_experts_per_tok", default=2, most=count)
    return decoder(
        shape,
        attention(shape, qkv=_QKV, out="attention.wo")
        + _feed_forwards(fields, shape, width, count, active)
        + layer_norms(shape, ("attention_norm", "ffn_norm")),
        layers=same_layers(shape, window=None),
        intermediate=width,
        tied=True,
        ends=Ends(embed="tok_embeddings", head="output"),
        experts=count,
        experts_per_token=active,
    )


def _shape(fields: Fields) -> DecoderShape:
    hidden = fields.integer("dim", "hidden_size")
    heads = fields.integer("n_heads", "num_attention_heads")
    shape = DecoderShape(
        layers=fields.integer("n_layers", "num_hidden_layers", most=MAX_LAYERS),
        hidden=hidden,
        heads=heads,
        kv_heads=fields.optional_integer("n_kv_heads", "num_key_value_heads") or heads,
        head_dim=split_evenly(fields, hidden, heads),
        vocab=fields.integer("vocab_size"),
    )
    return checked(fields, shape)


def _width(fields: Fields, hidden: int) -> int:
    stated = fields.optional_integer("hidden_dim")
    if stated is not None:
        return stated
    multiple = fields.integer("multiple_of", default=64)
    return -(-(8 * hidden // 3) // multiple) * multiple


def _feed_forwards(
    fields: Fields, shape: DecoderShape, width: int, count: int, active: int
) -> Weights:
    hidden, every = shape.hidden, shape.every
    prefix = "feed_forward"
    if not count:
        names = tuple(f"{prefix}.{part}" for part in _PARTS)
        return gated_mlp(hidden, width, layers=every, names=names)
    routed = tuple(f"{prefix}.experts.{part}" for part in _PARTS)
    weights = experts(hidden, width, count=count, active=active, layers=every, names=routed)
    if fields.raw("n_shared_experts"):
        shared = tuple(f"{prefix}.shared_experts.{part}" for part in _PARTS)
        weights += gated_mlp(hidden, width, layers=every, names=shared, component="shared_experts")
    return weights + router(hidden, count, layers=every, name=f"{prefix}.gate")
