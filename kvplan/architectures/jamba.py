"""Jamba: Mamba and attention layers in turn, experts in every other layer."""

from __future__ import annotations

from kvplan.architectures.anatomy import Anatomy, Ends, decoder
from kvplan.architectures.blocks import (
    Weights,
    attention,
    experts,
    gated_mlp,
    layer_norms,
    norm,
    router,
)
from kvplan.architectures.fields import MAX_EXPERTS, MAX_LAYERS, Fields
from kvplan.architectures.mamba import Mamba, mamba_cache, mamba_mixer, read_rank
from kvplan.architectures.recurrent import full_cache, read_taps
from kvplan.architectures.shapes import DecoderShape, read_shape
from kvplan.models.spec import Layer

_DENSE = tuple(f"feed_forward.{part}_proj" for part in ("gate", "up", "down"))
_EXPERTS = tuple(f"feed_forward.experts.{part}_proj" for part in ("gate", "up", "down"))


def jamba(fields: Fields) -> Anatomy:
    """Jamba 1 to 1.7."""
    shape = read_shape(fields, kv_heads=8)
    attentive = _every(fields, shape, "attn_layer", period=8, offset=4)
    mamba = tuple(sorted(set(shape.every) - set(attentive)))
    sizes = _sizes(fields, shape.hidden)
    width = fields.integer("intermediate_size", default=14_336)
    count = fields.integer("num_experts", default=16, most=MAX_EXPERTS)
    active = fields.integer("num_experts_per_tok", default=2, most=MAX_EXPERTS)
    if count > 1 and active > count:
        raise fields.conflict(f"A token can't go through {active} of {count} experts.")
    sparse = _every(fields, shape, "expert_layer", period=2, offset=1) if count > 1 else ()
    body = attention(shape, layers=attentive) + _mixer(sizes, shape.hidden, mamba)
    body += _feed_forward(shape, width, count=count, active=active, sparse=sparse)
    layers = tuple(
        Layer(caches=(full_cache(shape) if layer in attentive else mamba_cache(sizes),))
        for layer in shape.every
    )
    return decoder(
        shape,
        body + layer_norms(shape, ("input_layernorm", "pre_ff_layernorm")),
        layers=layers,
        intermediate=width,
        tied=fields.flag("tie_word_embeddings", default=False),
        ends=Ends(norm="final_layernorm"),
        experts=count if sparse else 0,
        experts_per_token=active if sparse else 0,
    )


def _mixer(sizes: Mamba, hidden: int, layers: tuple[int, ...]) -> Weights:
    weights = mamba_mixer("mamba", sizes, hidden, layers)
    for name, size in (("dt", sizes.rank), ("b", sizes.state), ("c", sizes.state)):
        weights += norm(f"mamba.{name}_layernorm", size, layers=layers, component="recurrent")
    return weights


def _feed_forward(
    shape: DecoderShape, width: int, *, count: int, active: int, sparse: tuple[int, ...]
) -> Weights:
    hidden = shape.hidden
    dense = tuple(sorted(set(shape.every) - set(sparse)))
    return (
        gated_mlp(hidden, width, layers=dense, names=_DENSE)
        + experts(hidden, width, count=count, active=active, layers=sparse, names=_EXPERTS)
        + router(hidden, count, layers=sparse, name="feed_forward.router")
    )


def _every(
    fields: Fields, shape: DecoderShape, name: str, *, period: int, offset: int
) -> tuple[int, ...]:
    """The layers that are ``offset`` past a multiple of ``period``."""
    step = fields.integer(f"{name}_period", default=period, most=MAX_LAYERS)
    first = fields.integer(f"{name}_offset", default=offset, least=0, most=MAX_LAYERS)
    if first >= step:
        raise fields.conflict(f"`{name}_offset` {first} has to be below the period {step}.")
    return tuple(layer for layer in shape.every if layer % step == first)


def _sizes(fields: Fields, hidden: int) -> Mamba:
    return Mamba(
        inner=fields.integer("mamba_expand", default=2, most=1024) * hidden,
        state=fields.integer("mamba_d_state", default=16),
        taps=read_taps(fields, "mamba_d_conv", default=4),
        rank=read_rank(fields, "mamba_dt_rank", hidden),
        bias=fields.flag("mamba_proj_bias", default=False),
        conv_bias=fields.flag("mamba_conv_bias", default=True),
    )
