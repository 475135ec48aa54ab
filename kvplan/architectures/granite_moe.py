"""Granite with experts: 3.x MoE, its variant with a shared expert, and the Mamba hybrids of 4."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

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
from kvplan.architectures.mamba2 import mamba2_cache, mamba2_mixer, read_hybrid_sizes
from kvplan.architectures.recurrent import full_cache, read_kinds, where
from kvplan.architectures.shapes import DecoderShape, read_shape
from kvplan.models.spec import Layer
from kvplan.models.weights import Component

_EXPERTS = ("block_sparse_moe.input_linear", "block_sparse_moe.output_linear")
_SHARED = ("shared_mlp.input_linear", "shared_mlp.output_linear")
_KINDS: Mapping[str, str] = MappingProxyType(
    {
        "mamba": "mamba",
        "linear_attention": "mamba",
        "attention": "attention",
        "full_attention": "attention",
    }
)


def granitemoe(fields: Fields) -> Anatomy:
    """Granite 3.x MoE: every layer has routed experts and nothing else."""
    shape = read_shape(fields)
    return _decoder(fields, shape, _attention(fields, shape), _full(shape), shared=0)


def granitemoeshared(fields: Fields) -> Anatomy:
    """Granite MoE with a shared expert beside the routed ones."""
    shape = read_shape(fields)
    shared = fields.integer("shared_intermediate_size", default=0, least=0)
    return _decoder(fields, shape, _attention(fields, shape), _full(shape), shared=shared)


def granitemoehybrid(fields: Fields) -> Anatomy:
    """Granite 4: Mamba 2 and attention layers as the file lists them, with or without experts."""
    shape = read_shape(fields)
    kinds = read_kinds(fields, "layer_types", shape.layers, _KINDS)
    if kinds is None:
        kinds = ("mamba",) * shape.layers
        fields.fill("layer_types", "all mamba")
    body = _attention(fields, shape, where(kinds, "attention"))
    layers = _full(shape)
    if "mamba" in kinds:
        inner = fields.integer("mamba_expand", default=2, most=1024) * shape.hidden
        sizes = read_hybrid_sizes(fields, inner, out_bias="mamba_proj_bias", norm=True)
        body += mamba2_mixer("mamba", sizes, shape.hidden, where(kinds, "mamba"))
        both = {"mamba": Layer(caches=(mamba2_cache(sizes),)), "attention": layers[0]}
        layers = tuple(both[kind] for kind in kinds)
    shared = fields.integer("shared_intermediate_size", default=1024)
    return _decoder(fields, shape, body, layers, shared=shared)


def _attention(
    fields: Fields, shape: DecoderShape, layers: tuple[int, ...] | None = None
) -> Weights:
    bias = fields.flag("attention_bias", default=False)
    return attention(shape, qkv_bias=bias, out_bias=bias, layers=layers)


def _full(shape: DecoderShape) -> tuple[Layer, ...]:
    return (Layer(caches=(full_cache(shape),)),) * shape.layers


def _decoder(
    fields: Fields, shape: DecoderShape, body: Weights, layers: tuple[Layer, ...], *, shared: int
) -> Anatomy:
    hidden, every = shape.hidden, shape.every
    count = fields.integer("num_local_experts", default=8, least=0, most=MAX_EXPERTS)
    width = active = 0
    if count:
        width = fields.integer("intermediate_size", default=11_008)
        active = fields.integer("num_experts_per_tok", default=2, most=count)
        body += experts(hidden, width, count=count, active=active, layers=every, names=_EXPERTS)
        body += router(hidden, count, layers=every, name="block_sparse_moe.router.layer")
    if shared:
        component: Component = "shared_experts" if count else "mlp"
        body += gated_mlp(hidden, shared, layers=every, names=_SHARED, component=component)
    return decoder(
        shape,
        body + layer_norms(shape),
        layers=layers,
        intermediate=max(width, shared),
        tied=fields.flag("tie_word_embeddings", default=False),
        experts=count,
        experts_per_token=active,
    )
