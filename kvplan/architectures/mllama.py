"""Llama 3.2 Vision: Llama 3 with layers that attend to the image instead of to text.

Weights: transformers v5.24.0 src/transformers/models/mllama/modeling_mllama.py.
"""

from __future__ import annotations

from kvplan.architectures.anatomy import Anatomy, decoder
from kvplan.architectures.blocks import (
    Weights,
    attention,
    gated_mlp,
    layer_norms,
    linear,
    qk_norms,
    vector,
)
from kvplan.architectures.fields import MAX_LAYERS, Fields
from kvplan.architectures.origin import class_source
from kvplan.architectures.shapes import DecoderShape, read_shape
from kvplan.architectures.towers.mllama import mllama_vit
from kvplan.architectures.towers.parts import tower_linear
from kvplan.models.caches import CrossCache, FullCache, LayerCache
from kvplan.models.spec import Layer

_ADDED = 8  # rows of the embedding for the image token: it has no row in the head
_CROSS = (3, 8, 13, 18, 23, 28, 33, 38)
_NAMES = ("cross_attn.q_proj", "cross_attn.k_proj", "cross_attn.v_proj")


def mllama(fields: Fields) -> Anatomy:
    """11B and 90B: the image's keys and values are kept once, whatever is generated."""
    text, vision = (_part(fields, name) for name in ("text_config", "vision_config"))
    shape = read_shape(text, kv_heads=8)
    crossed = _crossed(text, shape.layers)
    tower = mllama_vit(vision)
    intermediate = text.integer("intermediate_size", default=14336)
    projector = tower_linear("multi_modal_projector", (shape.hidden, tower.output), bias=True)
    body = (
        tower.weights
        + projector
        + _extra_rows(shape)
        + _attention(shape, crossed)
        + gated_mlp(shape.hidden, intermediate, layers=shape.every)
        + layer_norms(shape)
    )
    return decoder(
        shape,
        body,
        layers=_layers(shape, crossed, tower.tokens),
        intermediate=intermediate,
        tied=text.flag("tie_word_embeddings", default=False),
    )


def _part(fields: Fields, name: str) -> Fields:
    part = fields.section(name, source=class_source("mllama"))
    if part is None:
        raise fields.error(name, None, "an object")
    return part


def _crossed(text: Fields, layers: int) -> tuple[int, ...]:
    stated = text.integers("cross_attention_layers", least=0, most=MAX_LAYERS)
    if stated is None:
        stated = tuple(layer for layer in _CROSS if layer < layers)
        text.fill("cross_attention_layers", ", ".join(map(str, stated)))
    if len(set(stated)) != len(stated) or any(layer >= layers for layer in stated):
        raise text.conflict(f"`cross_attention_layers` names a layer beyond the {layers} layers.")
    return stated


def _extra_rows(shape: DecoderShape) -> Weights:
    return linear(
        "embed_tokens",
        (_ADDED, shape.hidden),
        component="embedding",
        sharding="replicated",
        place="embedding",
        part="[image]",
    )


def _attention(shape: DecoderShape, crossed: tuple[int, ...]) -> Weights:
    own = tuple(layer for layer in shape.every if layer not in set(crossed))
    across = attention(shape, qkv=_NAMES, out="cross_attn.o_proj")
    across += qk_norms(
        shape,
        (shape.head_dim, shape.head_dim),
        names=("cross_attn.q_norm", "cross_attn.k_norm"),
    )
    weights = _on(attention(shape), own) + _on(across, crossed)
    for name in ("cross_attn_attn_gate", "cross_attn_mlp_gate"):
        weights += vector(name, 1, component="attention", layers=crossed)
    return weights


def _on(weights: Weights, layers: tuple[int, ...]) -> Weights:
    if not layers:
        return ()
    return tuple(weight.model_copy(update={"layers": layers}) for weight in weights)


def _layers(shape: DecoderShape, crossed: tuple[int, ...], tokens: int) -> tuple[Layer, ...]:
    heads, size = shape.kv_heads, shape.head_dim
    full: LayerCache = FullCache(kv_heads=heads, head_dim=size, head_dim_v=size)
    cross: LayerCache = CrossCache(
        kv_heads=heads, head_dim=size, head_dim_v=size, source_tokens=tokens
    )
    own, across = Layer(caches=(full,)), Layer(caches=(cross,))
    chosen = set(crossed)
    return tuple(across if layer in chosen else own for layer in shape.every)
