"""MiniMax M2."""

from __future__ import annotations

from kvplan.architectures.anatomy import Anatomy, decoder
from kvplan.architectures.blocks import attention, experts, layer_norms, qk_norms, router
from kvplan.architectures.fields import MAX_EXPERTS, Fields
from kvplan.architectures.layers import same_layers
from kvplan.architectures.shapes import read_shape

_NAMES = tuple(f"block_sparse_moe.experts.{part}" for part in ("w1", "w3", "w2"))


def minimax_m2(fields: Fields) -> Anatomy:
    """MiniMax M2 to M2.7: grouped-query attention throughout, experts in every layer."""
    shape = read_shape(fields, kv_heads=8, head_dim=128)
    width = fields.integer("intermediate_size")
    count = fields.integer("num_local_experts", "num_experts", default=256, most=MAX_EXPERTS)
    active = fields.integer("num_experts_per_tok", default=8, most=count)
    sizes = (shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim)
    return decoder(
        shape,
        attention(shape)
        + qk_norms(shape, sizes)
        + experts(shape.hidden, width, count=count, active=active, layers=shape.every, names=_NAMES)
        + router(shape.hidden, count, layers=shape.every, name="block_sparse_moe.gate")
        + layer_norms(shape),
        layers=same_layers(shape, window=None),
        intermediate=width,
        tied=fields.flag("tie_word_embeddings", default=False),
        experts=count,
        experts_per_token=active,
    )
