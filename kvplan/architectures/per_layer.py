"""Per-layer embeddings of Gemma 3n and Gemma 4: a second table that feeds every layer."""

from __future__ import annotations

from typing import ClassVar

from pydantic import BaseModel, ConfigDict

from kvplan.architectures.blocks import Weights, linear, norm
from kvplan.architectures.fields import Fields
from kvplan.architectures.shapes import DecoderShape


class PerLayer(BaseModel):
    """Sizes of the second table.

    Attributes:
        vocab: Its rows.
        width: What one layer reads of a row.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    vocab: int
    width: int


def read_per_layer(fields: Fields) -> PerLayer | None:
    """The sizes, or None if the model has no such table (a width of 0)."""
    width = fields.integer("hidden_size_per_layer_input", default=256, least=0)
    if not width:
        return None
    vocab = fields.integer("vocab_size_per_layer_input", default=262_144)
    return PerLayer(vocab=vocab, width=width)


def per_layer_weights(shape: DecoderShape, per_layer: PerLayer) -> Weights:
    """The table, its projection, and each layer's way in and out.

    Sharding: vLLM v0.33.0 vllm/model_executor/models/gemma3n.py and gemma4.py.
    """
    hidden, width = shape.hidden, per_layer.width
    every = shape.layers * width
    weights = linear(
        "embed_tokens_per_layer",
        (per_layer.vocab, every),
        component="embedding",
        sharding="vocab",
        place="embedding",
    )
    weights += linear(
        "per_layer_model_projection",
        (every, hidden),
        component="embedding",
        sharding="column",
        place="embedding",
    )
    weights += norm("per_layer_projection_norm", width, place="embedding")
    for name, size in (
        ("per_layer_input_gate", (width, hidden)),
        ("per_layer_projection", (hidden, width)),
    ):
        weights += linear(name, size, component="other", sharding="replicated", layers=shape.every)
    return weights + norm("post_per_layer_input_norm", hidden, layers=shape.every)
