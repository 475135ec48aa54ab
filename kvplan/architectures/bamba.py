"""Bamba and Falcon-H1: Mamba 2 and attention, in turn or side by side."""

from __future__ import annotations

from kvplan.architectures.anatomy import Anatomy, Ends, decoder
from kvplan.architectures.blocks import Weights, attention, gated_mlp, layer_norms
from kvplan.architectures.fields import MAX_LAYERS, Fields
from kvplan.architectures.mamba2 import (
    MAX_HEADS,
    mamba2_cache,
    mamba2_mixer,
    read_hybrid_sizes,
)
from kvplan.architectures.recurrent import full_cache
from kvplan.architectures.shapes import DecoderShape, read_shape
from kvplan.models.spec import Layer

_ENDS = Ends(norm="final_layernorm")
_MLP = tuple(f"feed_forward.{part}_proj" for part in ("gate", "up", "down"))
_NORMS = ("input_layernorm", "pre_ff_layernorm")


def bamba(fields: Fields) -> Anatomy:
    """Bamba: most layers are Mamba 2, those that the file lists are attention."""
    shape = read_shape(fields, kv_heads=8)
    inner = fields.integer("mamba_expand", default=2, most=1024) * shape.hidden
    sizes = read_hybrid_sizes(fields, inner, out_bias="mamba_proj_bias", norm=True)
    stated = fields.integers("attn_layer_indices", least=0, most=MAX_LAYERS) or ()
    attentive = tuple(layer for layer in shape.every if layer in stated)
    mamba = tuple(layer for layer in shape.every if layer not in stated)
    bias = fields.flag("attention_bias", default=False)
    body = attention(shape, qkv_bias=bias, out_bias=bias, layers=attentive)
    body += mamba2_mixer("mamba", sizes, shape.hidden, mamba)
    layers = tuple(
        Layer(caches=(full_cache(shape) if layer in attentive else mamba2_cache(sizes),))
        for layer in shape.every
    )
    return _decoder(fields, shape, body, layers)


def falcon_h1(fields: Fields) -> Anatomy:
    """Falcon-H1: every layer runs Mamba 2 and attention side by side."""
    shape = read_shape(fields, kv_heads=8)
    inner = _inner(fields, shape.hidden)
    normed = fields.flag("mamba_rms_norm", default=False)
    sizes = read_hybrid_sizes(fields, inner, out_bias="projectors_bias", norm=normed)
    bias = fields.flag("attention_bias", default=False)
    body = attention(shape, qkv_bias=bias, out_bias=bias)
    body += mamba2_mixer("mamba", sizes, shape.hidden, shape.every)
    layer = Layer(caches=(full_cache(shape), mamba2_cache(sizes)))
    return _decoder(fields, shape, body, (layer,) * shape.layers)


def _inner(fields: Fields, hidden: int) -> int:
    """The channels of Falcon-H1's mixer. Null, unlike absent, means a multiple of ``hidden``."""
    if fields.has("mamba_n_heads") and isinstance(fields.raw("mamba_d_head"), int):
        default = fields.integer("mamba_n_heads", most=MAX_HEADS) * fields.integer("mamba_d_head")
    else:
        default = 1024
    stated = fields.optional_integer("mamba_d_ssm", default=default)
    return stated or fields.integer("mamba_expand", default=2, most=1024) * hidden


def _decoder(
    fields: Fields, shape: DecoderShape, body: Weights, layers: tuple[Layer, ...]
) -> Anatomy:
    width = fields.integer("intermediate_size", default=14_336)
    bias = fields.flag("mlp_bias", default=False)
    body += gated_mlp(shape.hidden, width, layers=shape.every, names=_MLP, bias=bias)
    return decoder(
        shape,
        body + layer_norms(shape, _NORMS),
        layers=layers,
        intermediate=width,
        tied=fields.flag("tie_word_embeddings", default=False),
        ends=_ENDS,
    )
