"""The sparse indexer of DeepSeek V3.2 and GLM 5: a small attention picks tokens for the big one.

It keeps 8-bit keys of its own. Names, sizes and sharding: vLLM v0.33.0
vllm/models/deepseek_v32/attention.py (every matrix whole on every rank).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from pydantic import BaseModel, ConfigDict

from kvplan.architectures.blocks import Weights, linear, norm
from kvplan.architectures.fields import MAX_LAYERS, Fields
from kvplan.architectures.shapes import DecoderShape

_MAX_HEADS = 2**16


class Indexer(BaseModel):
    """Sizes of an indexer: query heads, and elements of a head."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    heads: int
    head_dim: int


def read_indexer(fields: Fields, defaults: Mapping[str, int]) -> Indexer:
    """Reads the sizes; heads of 128 elements by default in all these classes."""
    return Indexer(
        heads=fields.integer("index_n_heads", default=defaults["index_n_heads"], most=_MAX_HEADS),
        head_dim=fields.integer("index_head_dim", default=128),
    )


def indexed_layers(fields: Fields, layers: int) -> tuple[int, ...]:
    """The layers with an indexer; the others use what the one before them picked.

    Stated as a list of types, as letters F (full) and S (shared), or as a step and the layer it
    starts from. Source: transformers v5.24.0
    src/transformers/models/glm_moe_dsa/configuration_glm_moe_dsa.py.
    """
    types = fields.texts("indexer_types", most=MAX_LAYERS)
    if types is None:
        types = _pattern(fields)
    if types is None:
        step = fields.integer("index_topk_freq", default=1, most=MAX_LAYERS)
        if step == 1:
            return tuple(range(layers))
        first = fields.integer("index_skip_topk_offset", default=2, least=0, most=MAX_LAYERS)
        return tuple(layer for layer in range(layers) if max(layer - first + 1, 0) % step == 0)
    if len(types) != layers or set(types) - {"full", "shared"}:
        raise fields.conflict(f"The indexer has to be full or shared in each of {layers} layers.")
    return tuple(layer for layer, kind in enumerate(types) if kind == "full")


def indexer_weights(
    shape: DecoderShape, indexer: Indexer, query_rank: int, layers: tuple[int, ...]
) -> Weights:
    """The projections, counted as attention."""
    hidden, heads = shape.hidden, indexer.heads
    sizes = {
        "wq_b": (heads * indexer.head_dim, query_rank),
        "wk": (indexer.head_dim, hidden),
        "weights_proj": (heads, hidden),
    }
    weights: Weights = ()
    for name, size in sizes.items():
        weights += linear(
            f"self_attn.indexer.{name}",
            size,
            component="attention",
            sharding="replicated",
            layers=layers,
        )
    return weights + norm(
        "self_attn.indexer.k_norm",
        indexer.head_dim,
        layers=layers,
        bias=True,
        component="attention",
    )


def _pattern(fields: Fields) -> tuple[str, ...] | None:
    letters = fields.raw("index_topk_pattern")
    if letters is None:
        return None
    if not isinstance(letters, str) or len(letters) > MAX_LAYERS or set(letters) - {"F", "S"}:
        raise fields.error("index_topk_pattern", letters, "letters F and S")
    return tuple("full" if letter == "F" else "shared" for letter in letters)
