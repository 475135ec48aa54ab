"""OLMo 1, 2 and 3."""

from __future__ import annotations

from kvplan.architectures.anatomy import LLAMA_ENDS, Anatomy, Ends, decoder
from kvplan.architectures.blocks import Weights, attention, gated_mlp, layer_norms, qk_norms
from kvplan.architectures.fields import Fields
from kvplan.architectures.layers import (
    every_nth_full,
    read_layer_types,
    read_window,
    same_layers,
    typed_layers,
)
from kvplan.architectures.shapes import DecoderShape, read_shape
from kvplan.models.spec import Layer


def olmo(fields: Fields) -> Anatomy:
    """OLMo 1: its normalizations have no weights."""
    shape = read_shape(fields)
    return _decoder(fields, shape, (), same_layers(shape, window=None), Ends(norm=None))


def olmo2(fields: Fields) -> Anatomy:
    """OLMo 2: normalizations after each block, queries and keys normalized across heads."""
    shape = read_shape(fields)
    return _decoder(fields, shape, _norms(shape), same_layers(shape, window=None), LLAMA_ENDS)


def olmo3(fields: Fields) -> Anatomy:
    """OLMo 3: OLMo 2 with windows, every fourth layer full."""
    shape = read_shape(fields)
    types = read_layer_types(fields, shape.layers) or every_nth_full(shape.layers, 4)
    window = read_window(fields, default=4096)
    layers = typed_layers(fields, shape, types, window=window)
    return _decoder(fields, shape, _norms(shape), layers, LLAMA_ENDS)


def _norms(shape: DecoderShape) -> Weights:
    names = ("post_attention_layernorm", "post_feedforward_layernorm")
    sizes = (shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim)
    return layer_norms(shape, names) + qk_norms(shape, sizes)


def _decoder(
    fields: Fields, shape: DecoderShape, norms: Weights, layers: tuple[Layer, ...], ends: Ends
) -> Anatomy:
    intermediate = fields.integer("intermediate_size")
    bias = fields.flag("attention_bias", default=False)
    return decoder(
        shape,
        attention(shape, qkv_bias=bias, out_bias=bias)
        + gated_mlp(shape.hidden, intermediate, layers=shape.every)
        + norms,
        layers=layers,
        intermediate=intermediate,
        tied=fields.flag("tie_word_embeddings", default=False),
        ends=ends,
    )
