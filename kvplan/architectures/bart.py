"""BART and its heirs: mBART, Pegasus, Marian."""

from __future__ import annotations

from kvplan.architectures.anatomy import Anatomy
from kvplan.architectures.blocks import Weights, embedding, linear, norm, positions
from kvplan.architectures.encoder_decoder import (
    Stacks,
    cross_layers,
    read_stacks,
    stack_weights,
)
from kvplan.architectures.fields import Fields
from kvplan.errors import NotModelledError

_OFFSET = 2  # learned positions start at 2: modeling_bart.py BartLearnedPositionalEmbedding


def bart(fields: Fields) -> Anatomy:
    """BART: the embedding is normalized."""
    stacks = read_stacks(fields)
    ends = _norms(stacks, "layernorm_embedding")
    return _assemble(fields, stacks, ends, offset=_OFFSET)


def mbart(fields: Fields) -> Anatomy:
    """mBART: the embedding and the output of each stack are normalized."""
    stacks = read_stacks(fields)
    ends = _norms(stacks, "layernorm_embedding") + _norms(stacks, "layer_norm")
    return _assemble(fields, stacks, ends, offset=_OFFSET)


def pegasus(fields: Fields) -> Anatomy:
    """Pegasus: the output of each stack is normalized; positions are sinuses, and stored."""
    stacks = read_stacks(fields)
    return _assemble(fields, stacks, _norms(stacks, "layer_norm"), offset=0)


def marian(fields: Fields) -> Anatomy:
    """Marian: no normalization outside the layers.

    Raises:
        NotModelledError: encoder and decoder have vocabularies of their own.
    """
    if not fields.flag("share_encoder_decoder_embeddings", default=True):
        raise NotModelledError(
            "A Marian model whose encoder and decoder have embeddings of their own is not"
            " modelled.",
            hint="Models with shared embeddings are.",
        )
    return _assemble(fields, read_stacks(fields), (), offset=0)


def _norms(stacks: Stacks, name: str) -> Weights:
    hidden = stacks.shape.hidden
    return norm(name, hidden, bias=True, place="tower") + norm(
        name, hidden, bias=True, place="embedding" if "embedding" in name else "head"
    )


def _assemble(fields: Fields, stacks: Stacks, ends: Weights, *, offset: int) -> Anatomy:
    shape = stacks.shape
    longest = fields.integer("max_position_embeddings", default=1024)
    tied = fields.flag("tie_word_embeddings", default=True)
    head = linear(
        "lm_head",
        (shape.vocab, shape.hidden),
        component="lm_head",
        sharding="vocab",
        place="head",
    )
    return Anatomy(
        hidden_size=shape.hidden,
        vocab_size=shape.vocab,
        intermediate_size=stacks.width,
        attention_heads=shape.heads,
        layers=cross_layers(shape, longest),
        tied=tied,
        weights=embedding(shape, "shared")
        + _encoder_positions(longest + offset, shape.hidden)
        + positions(longest + offset, shape.hidden, "embed_positions")
        + stack_weights(stacks)
        + ends
        + (() if tied else head),
    )


def _encoder_positions(count: int, hidden: int) -> Weights:
    return linear(
        "embed_positions",
        (count, hidden),
        component="embedding",
        sharding="replicated",
        place="tower",
    )
