"""MiniCPM 1B to 8B, with experts too (minicpm)."""

from __future__ import annotations

from kvplan.architectures.anatomy import Anatomy, decoder
from kvplan.architectures.blocks import (
    Weights,
    attention,
    experts,
    gated_mlp,
    layer_norms,
    router,
)
from kvplan.architectures.fields import MAX_EXPERTS, Fields
from kvplan.architectures.layers import same_layers
from kvplan.architectures.shapes import DecoderShape, read_shape

_EXPERT = tuple(f"mlp.experts.{part}" for part in ("w1", "w3", "w2"))


def minicpm(fields: Fields) -> Anatomy:
    """MiniCPM 1, 2 and 4: Llama with scaled residuals; sparse reading drops no token."""
    shape = read_shape(fields)
    intermediate = fields.integer("intermediate_size")
    count = fields.integer("num_experts", default=0, least=0, most=MAX_EXPERTS)
    active = fields.integer("num_experts_per_tok", most=count) if count else 0
    return decoder(
        shape,
        attention(shape) + _feed_forwards(shape, intermediate, count, active) + layer_norms(shape),
        layers=same_layers(shape, window=None),
        intermediate=intermediate,
        tied=fields.flag("tie_word_embeddings", default=True),
        experts=count,
        experts_per_token=active,
    )


def _feed_forwards(shape: DecoderShape, width: int, count: int, active: int) -> Weights:
    if not count:
        return gated_mlp(shape.hidden, width, layers=shape.every)
    return experts(
        shape.hidden, width, count=count, active=active, layers=shape.every, names=_EXPERT
    ) + router(shape.hidden, count, layers=shape.every)
