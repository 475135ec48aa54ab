"""JetMoE: experts for the feed-forward and for the queries of attention."""

from __future__ import annotations

from kvplan.architectures.anatomy import Anatomy, decoder
from kvplan.architectures.blocks import Weights, layer_norms, linear, router, vector
from kvplan.architectures.fields import MAX_EXPERTS, MAX_LAYERS, Fields
from kvplan.architectures.layers import same_layers
from kvplan.architectures.shapes import DecoderShape
from kvplan.models.weights import Component


def jetmoe(fields: Fields) -> Anatomy:
    """JetMoE 8B: each token has the queries of its chosen experts, and one set of KV heads."""
    count = fields.integer("num_local_experts", default=8, most=MAX_EXPERTS)
    active = fields.integer("num_experts_per_tok", default=2, most=count)
    kv_heads = fields.integer("num_key_value_heads", default=16)
    shape = DecoderShape(
        layers=fields.integer("num_hidden_layers", most=MAX_LAYERS),
        hidden=fields.integer("hidden_size"),
        heads=kv_heads * active,
        kv_heads=kv_heads,
        head_dim=fields.integer("kv_channels", default=128),
        vocab=fields.integer("vocab_size"),
    )
    intermediate = fields.integer("intermediate_size", "ffn_hidden_size")
    width = kv_heads * shape.head_dim
    hidden = shape.hidden
    return decoder(
        shape,
        _keys(shape)
        + _expert("self_attention.experts.input_linear", (width, hidden), shape, count, active)
        + _expert("self_attention.experts.output_linear", (hidden, width), shape, count, active)
        + vector("self_attention.experts.bias", hidden, component="attention", layers=shape.every)
        + router(hidden, count, layers=shape.every, name="self_attention.experts.router.layer")
        + _expert("mlp.input_linear", (2 * intermediate, hidden), shape, count, active)
        + _expert("mlp.output_linear", (hidden, intermediate), shape, count, active)
        + vector("mlp.bias", hidden, component="experts", layers=shape.every)
        + router(hidden, count, layers=shape.every, name="mlp.router.layer")
        + layer_norms(shape),
        layers=same_layers(shape, window=None),
        intermediate=intermediate,
        tied=fields.flag("tie_word_embeddings", default=True),
        experts=count,
        experts_per_token=active,
    )


def _keys(shape: DecoderShape) -> Weights:
    weights: Weights = ()
    for part in ("[k]", "[v]"):
        weights += linear(
            "self_attention.kv_proj",
            (shape.kv_heads * shape.head_dim, shape.hidden),
            component="attention",
            sharding="kv_heads",
            heads=shape.kv_heads,
            layers=shape.every,
            part=part,
        )
    return weights


def _expert(
    name: str, size: tuple[int, int], shape: DecoderShape, count: int, active: int
) -> Weights:
    component: Component = "attention" if name.startswith("self_attention") else "experts"
    return linear(
        name,
        size,
        component=component,
        sharding="column" if name.endswith("input_linear") else "row",
        layers=shape.every,
        copies=count,
        active=active,
    )
