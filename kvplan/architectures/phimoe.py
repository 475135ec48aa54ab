"""Phi 3.5 MoE, Phi mini and tiny MoE, GRIN MoE."""

from __future__ import annotations

from kvplan.architectures.anatomy import Anatomy, Ends, decoder
from kvplan.architectures.blocks import attention, experts, layer_norms, router, vector
from kvplan.architectures.fields import MAX_EXPERTS, Fields
from kvplan.architectures.layers import read_window, same_layers
from kvplan.architectures.shapes import read_shape

_NAMES = tuple(f"block_sparse_moe.experts.{part}" for part in ("w1", "w3", "w2"))


def phimoe(fields: Fields) -> Anatomy:
    """One window for all layers, or none; experts in every layer, shifting normalizations."""
    shape = read_shape(fields, kv_heads=8)
    width = fields.integer("intermediate_size")
    count = fields.integer("num_local_experts", default=16, most=MAX_EXPERTS)
    active = fields.integer("num_experts_per_tok", default=2, most=count)
    bias = fields.flag("attention_bias", default=False)
    body = (
        attention(shape, qkv_bias=bias, out_bias=bias)
        + experts(shape.hidden, width, count=count, active=active, layers=shape.every, names=_NAMES)
        + router(shape.hidden, count, layers=shape.every, name="block_sparse_moe.gate")
        + layer_norms(shape, bias=True)
    )
    if fields.flag("lm_head_bias", default=False):
        body += vector(
            "lm_head.bias", shape.vocab, component="lm_head", place="head", sharding="vocab"
        )
    return decoder(
        shape,
        body,
        layers=same_layers(shape, window=read_window(fields)),
        intermediate=width,
        tied=fields.flag("tie_word_embeddings", default=False),
        ends=Ends(norm_bias=True),
        experts=count,
        experts_per_token=active,
    )
