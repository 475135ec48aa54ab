"""Mixtral."""

from __future__ import annotations

from kvplan.architectures.anatomy import Anatomy, decoder
from kvplan.architectures.blocks import attention, experts, layer_norms, router
from kvplan.architectures.fields import MAX_EXPERTS, Fields
from kvplan.architectures.layers import read_window, same_layers
from kvplan.architectures.shapes import read_shape

_NAMES = tuple(f"block_sparse_moe.experts.{part}" for part in ("w1", "w3", "w2"))


def mixtral(fields: Fields) -> Anatomy:
    """Mixtral 8x7B and 8x22B: every layer has routed experts and nothing else."""
    shape = read_shape(fields, kv_heads=8)
    width = fields.integer("intermediate_size")
    count = fields.integer("num_local_experts", "num_experts", default=8, most=MAX_EXPERTS)
    active = fields.integer("num_experts_per_tok", default=2, most=count)
    return decoder(
        shape,
        attention(shape)
        + experts(shape.hidden, width, count=count, active=active, layers=shape.every, names=_NAMES)
        + router(shape.hidden, count, layers=shape.every, name="block_sparse_moe.gate")
        + layer_norms(shape),
        layers=same_layers(shape, window=read_window(fields)),
        intermediate=width,
        tied=fields.flag("tie_word_embeddings", default=False),
        experts=count,
        experts_per_token=active,
    )
