"""What encoder-decoder families share: stacks of layers with and without cross attention.

Encoder layers are copies of one on the first pipeline stage. A decoder layer keeps the keys and
values of its own tokens, and those of the encoder's output once.
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import BaseModel, ConfigDict

from kvplan.architectures.blocks import Weights, linear, norm
from kvplan.architectures.fields import MAX_LAYERS, Fields
from kvplan.architectures.shapes import DecoderShape, split_evenly
from kvplan.architectures.towers.parts import repeated
from kvplan.models.caches import CrossCache, FullCache
from kvplan.models.spec import Layer
from kvplan.models.weights import Component, Place, Sharding

_PROJECTIONS: tuple[tuple[str, Sharding], ...] = (
    ("q_proj", "column"),
    ("k_proj", "column"),
    ("v_proj", "column"),
    ("out_proj", "row"),
)


class Stacks(BaseModel):
    """Sizes of both stacks, and whether the keys are projected with a bias.

    Attributes:
        shape: The decoder's sizes.
        width: Its feed-forward.
        encoder_layers, encoder_width: The same of the encoder.
        key_bias: Whether key projections have a bias; all others do.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    shape: DecoderShape
    width: int
    encoder_layers: int
    encoder_width: int
    key_bias: bool = True


class Spot(BaseModel):
    """Where the weights of one stack lie."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    place: Place
    layers: tuple[int, ...] = ()


def read_stacks(fields: Fields, *, key_bias: bool = True) -> Stacks:
    """Reads the fields that BART, its heirs and Whisper name alike; all files state them."""
    hidden = fields.integer("d_model")
    heads = fields.integer("decoder_attention_heads")
    shape = DecoderShape(
        layers=fields.integer("decoder_layers", most=MAX_LAYERS),
        hidden=hidden,
        heads=heads,
        kv_heads=heads,
        head_dim=split_evenly(fields, hidden, heads),
        vocab=fields.integer("vocab_size"),
    )
    return Stacks(
        shape=shape,
        width=fields.integer("decoder_ffn_dim"),
        encoder_layers=fields.integer("encoder_layers", most=MAX_LAYERS),
        encoder_width=fields.integer("encoder_ffn_dim"),
        key_bias=key_bias,
    )


def stack_weights(stacks: Stacks) -> Weights:
    """The weights of all layers, encoder first."""
    hidden, inside = stacks.shape.hidden, Spot(place="layers", layers=stacks.shape.every)
    encoder = Spot(place="tower")
    one = _attention("self_attn", hidden, encoder, key_bias=stacks.key_bias)
    one += _feed_forward(hidden, stacks.encoder_width, encoder)
    decoder = _attention("self_attn", hidden, inside, key_bias=stacks.key_bias)
    decoder += _attention("encoder_attn", hidden, inside, key_bias=stacks.key_bias)
    decoder += _feed_forward(hidden, stacks.width, inside)
    return repeated(one, stacks.encoder_layers) + decoder


def cross_layers(shape: DecoderShape, source_tokens: int | None) -> tuple[Layer, ...]:
    """Decoder layers that attend to themselves and to ``source_tokens`` of the encoder.

    None: as many source tokens as the request has tokens of its own.
    """
    heads, size = shape.kv_heads, shape.head_dim
    own = FullCache(kv_heads=heads, head_dim=size, head_dim_v=size)
    cross = CrossCache(kv_heads=heads, head_dim=size, head_dim_v=size, source_tokens=source_tokens)
    return (Layer(caches=(own, cross)),) * shape.layers


def _attention(name: str, hidden: int, spot: Spot, *, key_bias: bool) -> Weights:
    weights: Weights = ()
    for projection, sharding in _PROJECTIONS:
        weights += linear(
            f"{name}.{projection}",
            (hidden, hidden),
            component="attention",
            sharding=sharding,
            layers=spot.layers,
            place=spot.place,
            bias=key_bias or projection != "k_proj",
        )
    return weights + _norm(f"{name}_layer_norm", hidden, spot, "attention")


def _feed_forward(hidden: int, width: int, spot: Spot) -> Weights:
    up = linear(
        "fc1",
        (width, hidden),
        component="mlp",
        sharding="column",
        layers=spot.layers,
        place=spot.place,
        bias=True,
    )
    down = linear(
        "fc2",
        (hidden, width),
        component="mlp",
        sharding="row",
        layers=spot.layers,
        place=spot.place,
        bias=True,
    )
    return up + down + _norm("final_layer_norm", hidden, spot, "norms")


def _norm(name: str, hidden: int, spot: Spot, component: Component) -> Weights:
    return norm(name, hidden, layers=spot.layers, bias=True, component=component, place=spot.place)
