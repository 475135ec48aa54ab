"""Llama and the classes that are built like it: Mistral, Ministral 3, Granite, SmolLM 3."""

from __future__ import annotations

from kvplan.architectures.anatomy import Anatomy, decoder
from kvplan.architectures.blocks import attention, gated_mlp, layer_norms
from kvplan.architectures.fields import Fields
from kvplan.architectures.layers import (
    FULL,
    SLIDING,
    read_layer_types,
    read_window,
    same_layers,
    typed_layers,
)
from kvplan.architectures.shapes import DecoderShape, read_shape
from kvplan.models.spec import Layer


def llama(fields: Fields) -> Anatomy:
    """Llama 1 to 3.x, Yi, SmolLM, TinyLlama, Vicuna, InternLM in Llama's form."""
    shape = read_shape(fields)
    return _with_biases(fields, shape, same_layers(shape, window=None), tied_by_default=False)


def granite(fields: Fields) -> Anatomy:
    """Granite 3.x, dense."""
    shape = read_shape(fields)
    return _with_biases(fields, shape, same_layers(shape, window=None), tied_by_default=False)


def smollm3(fields: Fields) -> Anatomy:
    """SmolLM 3: only the layers without rotary positions may have a window."""
    shape = read_shape(fields, kv_heads=4)
    window = read_window(fields) if fields.flag("use_sliding_window", default=False) else None
    types = read_layer_types(fields, shape.layers) or _smollm3_types(fields, shape.layers, window)
    layers = typed_layers(fields, shape, types, window=window)
    return _with_biases(fields, shape, layers, tied_by_default=True)


def mistral(fields: Fields) -> Anatomy:
    """Mistral 7B and its successors: one window for all layers, or none."""
    return _without_biases(fields, window_default=4096)


def ministral3(fields: Fields) -> Anatomy:
    """Ministral 3 and the text part of the Mistral 3 wrappers."""
    return _without_biases(fields, window_default=None)


def _with_biases(
    fields: Fields, shape: DecoderShape, layers: tuple[Layer, ...], *, tied_by_default: bool
) -> Anatomy:
    intermediate = fields.integer("intermediate_size")
    bias = fields.flag("attention_bias", default=False)
    mlp_bias = fields.flag("mlp_bias", default=False)
    return decoder(
        shape,
        attention(shape, qkv_bias=bias, out_bias=bias)
        + gated_mlp(shape.hidden, intermediate, layers=shape.every, bias=mlp_bias)
        + layer_norms(shape),
        layers=layers,
        intermediate=intermediate,
        tied=fields.flag("tie_word_embeddings", default=tied_by_default),
    )


def _without_biases(fields: Fields, *, window_default: int | None) -> Anatomy:
    shape = read_shape(fields, kv_heads=8)
    intermediate = fields.integer("intermediate_size")
    return decoder(
        shape,
        attention(shape)
        + gated_mlp(shape.hidden, intermediate, layers=shape.every)
        + layer_norms(shape),
        layers=same_layers(shape, window=read_window(fields, default=window_default)),
        intermediate=intermediate,
        tied=fields.flag("tie_word_embeddings", default=False),
    )


def _smollm3_types(fields: Fields, layers: int, window: int | None) -> tuple[str, ...]:
    if window is None:
        return (FULL,) * layers
    rotary = fields.integers("no_rope_layers", least=0, most=1)
    if rotary is None:
        interval = fields.integer("no_rope_layer_interval", default=4)
        rotary = tuple(int((layer + 1) % interval != 0) for layer in range(layers))
    if len(rotary) != layers:
        raise fields.conflict(f"`no_rope_layers` lists {len(rotary)} layers of {layers}.")
    return tuple(FULL if has_rope else SLIDING for has_rope in rotary)
