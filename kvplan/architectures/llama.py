"""Llama and the classes that are built like it.

Mistral, Ministral 3, Granite, SmolLM 3, ERNIE 4.5 (dense), Seed-OSS.
"""

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
    return _with_flags(fields, read_shape(fields))


def granite(fields: Fields) -> Anatomy:
    """Granite 3.x, dense."""
    return _with_flags(fields, read_shape(fields))


def smollm3(fields: Fields) -> Anatomy:
    """SmolLM 3: only the layers without rotary positions may have a window."""
    shape = read_shape(fields, kv_heads=4)
    window = read_window(fields) if fields.flag("use_sliding_window", default=False) else None
    types = read_layer_types(fields, shape.layers) or _smollm3_types(fields, shape.layers, window)
    layers = typed_layers(fields, shape, types, window=window)
    return _with_flags(fields, shape, layers=layers, tied_by_default=True)


def ernie4_5(fields: Fields) -> Anatomy:
    """ERNIE 4.5, dense: one flag for all biases."""
    shape = read_shape(fields, kv_heads=2, head_dim=128)
    bias = fields.flag("use_bias", default=False)
    return _decoder(fields, shape, biases=(bias, bias, bias), layers=None, tied_by_default=True)


def seed_oss(fields: Fields) -> Anatomy:
    """Seed-OSS: biases on query, key and value, and a flag of its own for the output."""
    shape = read_shape(fields, kv_heads=8, head_dim=128)
    biases = (
        fields.flag("attention_bias", default=True),
        fields.flag("attention_out_bias", default=False),
        fields.flag("mlp_bias", default=False),
    )
    return _decoder(fields, shape, biases=biases, layers=None, tied_by_default=False)


def mistral(fields: Fields) -> Anatomy:
    """Mistral 7B and its successors: one window for all layers, or none."""
    return _mistral(fields, window_default=4096)


def ministral3(fields: Fields) -> Anatomy:
    """Ministral 3 and the text part of the Mistral 3 wrappers."""
    return _mistral(fields, window_default=None)


def _with_flags(
    fields: Fields,
    shape: DecoderShape,
    *,
    layers: tuple[Layer, ...] | None = None,
    tied_by_default: bool = False,
) -> Anatomy:
    bias = fields.flag("attention_bias", default=False)
    biases = (bias, bias, fields.flag("mlp_bias", default=False))
    return _decoder(fields, shape, biases=biases, layers=layers, tied_by_default=tied_by_default)


def _mistral(fields: Fields, *, window_default: int | None) -> Anatomy:
    shape = read_shape(fields, kv_heads=8)
    layers = same_layers(shape, window=read_window(fields, default=window_default))
    return _decoder(
        fields, shape, biases=(False, False, False), layers=layers, tied_by_default=False
    )


def _decoder(
    fields: Fields,
    shape: DecoderShape,
    *,
    biases: tuple[bool, bool, bool],
    layers: tuple[Layer, ...] | None,
    tied_by_default: bool,
) -> Anatomy:
    """``biases``: of query, key and value, of the output, of the feed-forward."""
    qkv_bias, out_bias, mlp_bias = biases
    intermediate = fields.integer("intermediate_size")
    return decoder(
        shape,
        attention(shape, qkv_bias=qkv_bias, out_bias=out_bias)
        + gated_mlp(shape.hidden, intermediate, layers=shape.every, bias=mlp_bias)
        + layer_norms(shape),
        layers=layers or same_layers(shape, window=None),
        intermediate=intermediate,
        tied=fields.flag("tie_word_embeddings", default=tied_by_default),
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
