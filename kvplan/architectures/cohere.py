"""Command R, Command R+, Aya (cohere); Command R7B and Command A (cohere2)."""

from __future__ import annotations

from kvplan.architectures.anatomy import Anatomy, decoder
from kvplan.architectures.blocks import Weights, attention, gated_mlp, layer_norms, qk_norms
from kvplan.architectures.fields import Fields
from kvplan.architectures.layers import read_pattern, read_window, same_layers, typed_layers
from kvplan.architectures.shapes import DecoderShape, read_shape
from kvplan.models.spec import Layer


def cohere(fields: Fields) -> Anatomy:
    """The first generation: full attention, queries and keys normalized in the largest."""
    shape = read_shape(fields)
    extra: Weights = ()
    if fields.flag("use_qk_norm", default=False):
        sizes = (shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim)
        extra = qk_norms(shape, sizes)
    return _decoder(fields, shape, extra, same_layers(shape, window=None))


def cohere2(fields: Fields) -> Anatomy:
    """The second generation: three windowed layers, then a full one."""
    shape = read_shape(fields)
    types = read_pattern(fields, shape.layers, default=4)
    window = read_window(fields, default=4096)
    return _decoder(fields, shape, (), typed_layers(fields, shape, types, window=window))


def _decoder(
    fields: Fields, shape: DecoderShape, extra: Weights, layers: tuple[Layer, ...]
) -> Anatomy:
    intermediate = fields.integer("intermediate_size")
    bias = fields.flag("attention_bias", default=False)
    return decoder(
        shape,
        attention(shape, qkv_bias=bias, out_bias=bias)
        + extra
        + gated_mlp(shape.hidden, intermediate, layers=shape.every)
        # Attention and feed-forward read the same normalized input.
        + layer_norms(shape, ("input_layernorm",)),
        layers=layers,
        intermediate=intermediate,
        tied=fields.flag("tie_word_embeddings", default=True),
    )
