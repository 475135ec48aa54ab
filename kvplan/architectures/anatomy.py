"""Anatomy: what a family's file finds out about one model."""

from __future__ import annotations

from typing import ClassVar

from pydantic import BaseModel, ConfigDict

from kvplan.architectures.blocks import Weights, embedding, final_norm, head
from kvplan.architectures.shapes import DecoderShape
from kvplan.models.spec import Layer
from kvplan.models.weights import Weight


class Anatomy(BaseModel):
    """The parts of a `ModelSpec` that depend on the family.

    Attributes:
        hidden_size, vocab_size, attention_heads: As in `ModelSpec`.
        intermediate_size: The widest feed-forward of one token (of the experts: one expert).
        experts, experts_per_token: Routed experts of a layer, and how many a token goes through.
        layers: The decoder's layers in order.
        tied: The head has no matrix of its own.
        weights: The inventory, without a tied head.
        notes: What is not exact, as sentences.
        uncounted: A part whose weights the configuration does not size, by name, or None.
        draft: Kind of draft that it is, or None.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    hidden_size: int
    vocab_size: int
    intermediate_size: int
    attention_heads: int
    experts: int = 0
    experts_per_token: int = 0
    layers: tuple[Layer, ...]
    tied: bool
    weights: tuple[Weight, ...]
    notes: tuple[str, ...] = ()
    uncounted: str | None = None
    draft: str | None = None


class Ends(BaseModel):
    """What stands before and after the layers, by name.

    Attributes:
        embed: The token embedding.
        norm: The last normalization, or None.
        norm_bias: Whether it also shifts.
        head: The output matrix.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    embed: str = "embed_tokens"
    norm: str | None = "norm"
    norm_bias: bool = False
    head: str = "lm_head"


LLAMA_ENDS = Ends()


def decoder(
    shape: DecoderShape,
    body: Weights,
    *,
    layers: tuple[Layer, ...],
    intermediate: int,
    tied: bool,
    ends: Ends = LLAMA_ENDS,
    experts: int = 0,
    experts_per_token: int = 0,
) -> Anatomy:
    """A decoder: embedding, ``body`` (the weights of the layers), last normalization, head."""
    last = final_norm(shape.hidden, ends.norm, bias=ends.norm_bias) if ends.norm else ()
    return Anatomy(
        hidden_size=shape.hidden,
        vocab_size=shape.vocab,
        intermediate_size=intermediate,
        attention_heads=shape.heads,
        experts=experts,
        experts_per_token=experts_per_token,
        layers=layers,
        tied=tied,
        weights=embedding(shape, ends.embed) + body + last + head(shape, tied=tied, name=ends.head),
    )
