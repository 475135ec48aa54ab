"""Solar Pro (solar) and Solar Open (solar_open)."""

from __future__ import annotations

from kvplan.architectures.anatomy import Anatomy, decoder
from kvplan.architectures.blocks import attention, experts, gated_mlp, layer_norms, router
from kvplan.architectures.fields import MAX_EXPERTS, Fields
from kvplan.architectures.layers import read_window, same_layers
from kvplan.architectures.shapes import read_shape

_SHARED = tuple(f"mlp.shared_experts.{part}_proj" for part in ("gate", "up", "down"))


def solar(fields: Fields) -> Anatomy:
    """Solar Pro Preview: Llama with extra residual connections, which have no weights.

    They and the window are read by vLLM v0.33.0 vllm/model_executor/models/solar.py.
    """
    shape = read_shape(fields)
    intermediate = fields.integer("intermediate_size")
    bias = fields.flag("attention_bias", default=False)
    return decoder(
        shape,
        attention(shape, qkv_bias=bias, out_bias=bias)
        + gated_mlp(
            shape.hidden,
            intermediate,
            layers=shape.every,
            bias=fields.flag("mlp_bias", default=False),
        )
        + layer_norms(shape),
        layers=same_layers(shape, window=read_window(fields)),
        intermediate=intermediate,
        tied=fields.flag("tie_word_embeddings", default=False),
    )


def solar_open(fields: Fields) -> Anatomy:
    """Solar Open: experts and a shared one in every layer."""
    shape = read_shape(fields, kv_heads=8, head_dim=128)
    width = fields.integer("moe_intermediate_size", default=1280)
    count = fields.integer("n_routed_experts", "num_local_experts", default=128, most=MAX_EXPERTS)
    active = fields.integer("num_experts_per_tok", default=8, most=count)
    shared = fields.integer("n_shared_experts", default=1, most=MAX_EXPERTS)
    every, hidden = shape.every, shape.hidden
    return decoder(
        shape,
        attention(shape, qkv_bias=fields.flag("attention_bias", default=False))
        + experts(hidden, width, count=count, active=active, layers=every)
        + gated_mlp(hidden, width * shared, layers=every, names=_SHARED, component="shared_experts")
        + router(hidden, count, layers=every)
        + layer_norms(shape),
        layers=same_layers(shape, window=None),
        intermediate=width,
        tied=fields.flag("tie_word_embeddings", default=False),
        experts=count,
        experts_per_token=active,
    )
