"""Granite Swash: Granite, dense and with experts, with windows and sinks."""

from __future__ import annotations

from kvplan.architectures.anatomy import Anatomy
from kvplan.architectures.blocks import vector
from kvplan.architectures.fields import Fields
from kvplan.architectures.granite_moe import granitemoeshared
from kvplan.architectures.layers import (
    FULL,
    SLIDING,
    read_layer_types,
    read_window,
    typed_layers,
)
from kvplan.architectures.llama import granite
from kvplan.architectures.shapes import read_shape


def granite_swa(fields: Fields) -> Anatomy:
    """Granite Swash 2B."""
    stated = fields.completed({"num_key_value_heads": 4, "tie_word_embeddings": True})
    return _with_windows(stated, granite(stated))


def granitemoe_swa(fields: Fields) -> Anatomy:
    """Granite Swash 3B, with experts."""
    return _with_windows(fields, granitemoeshared(fields))


def _with_windows(fields: Fields, anatomy: Anatomy) -> Anatomy:
    """The first of every four layers is full; every head has a sink."""
    shape = read_shape(fields)
    types = read_layer_types(fields, shape.layers)
    if types is None:
        types = tuple(SLIDING if layer % 4 else FULL for layer in shape.every)
    sinks = vector(
        "self_attn.sinks",
        shape.heads,
        component="attention",
        layers=shape.every,
        sharding="column",
    )
    layers = typed_layers(fields, shape, types, window=read_window(fields, default=128))
    return anatomy.model_copy(update={"layers": layers, "weights": anatomy.weights + sinks})
