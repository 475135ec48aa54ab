"""Whisper: an encoder of 30 seconds of sound, and a decoder that writes what it heard."""

from __future__ import annotations

from kvplan.architectures.anatomy import Anatomy
from kvplan.architectures.blocks import (
    Weights,
    embedding,
    final_norm,
    head,
    linear,
    norm,
    positions,
)
from kvplan.architectures.encoder_decoder import (
    cross_layers,
    read_stacks,
    stack_weights,
)
from kvplan.architectures.fields import Fields
from kvplan.models.weights import Component

_TAPS = 3  # width of the convolutions


def whisper(fields: Fields) -> Anatomy:
    """Whisper of any size. Defaults: WhisperConfig."""
    stacks = read_stacks(fields, key_bias=False)
    shape = stacks.shape
    heard = fields.integer("max_source_positions", default=1500)
    tied = fields.flag("tie_word_embeddings", default=True)
    written = fields.integer("max_target_positions", default=448)
    return Anatomy(
        hidden_size=shape.hidden,
        vocab_size=shape.vocab,
        intermediate_size=stacks.width,
        attention_heads=shape.heads,
        layers=cross_layers(shape, heard),
        tied=tied,
        weights=embedding(shape)
        + positions(written, shape.hidden, "embed_positions")
        + _front(fields, shape.hidden, heard)
        + stack_weights(stacks)
        + norm("layer_norm", shape.hidden, bias=True, place="tower")
        + final_norm(shape.hidden, "layer_norm", bias=True)
        + head(shape, tied=tied, name="proj_out"),
    )


def _front(fields: Fields, hidden: int, heard: int) -> Weights:
    """What turns sound into the encoder's input."""
    bands = fields.integer("num_mel_bins", default=80, most=2**16)
    return (
        _tower("conv1", (hidden, _TAPS * bands), "other", bias=True)
        + _tower("conv2", (hidden, _TAPS * hidden), "other", bias=True)
        + _tower("embed_positions", (heard, hidden), "embedding", bias=False)
    )


def _tower(name: str, size: tuple[int, int], component: Component, *, bias: bool) -> Weights:
    return linear(name, size, component=component, sharding="replicated", place="tower", bias=bias)
