"""Drafts that write a block of tokens at once: DFlash, and DSpark and Domino built on it.

Layers of Qwen 3 that attend to a projection of the target's states; embedding and head are the
target's. Sources: vLLM v0.33.0 vllm/model_executor/models/qwen3_dflash.py and qwen3_dspark.py,
sgl-project/SpecForge@40f8587 specforge/modeling/draft/ (domino.py, dspark.py).
"""

from __future__ import annotations

from kvplan.architectures.anatomy import Anatomy
from kvplan.architectures.blocks import Weights, attention, gated_mlp, layer_norms, linear, qk_norms
from kvplan.architectures.drafts.parts import (
    draft,
    end_norm,
    features,
    fusion,
    own_head,
    stated_layers,
)
from kvplan.architectures.fields import Fields
from kvplan.architectures.layers import (
    FULL,
    SLIDING,
    read_layer_types,
    read_window,
    typed_layers,
)
from kvplan.architectures.shapes import DecoderShape, read_shape
from kvplan.errors import NotModelledError
from kvplan.models.spec import Layer

_MOST_RANK = 65_536


def dflash(fields: Fields) -> Anatomy:
    """DFlash on Qwen 3's layers."""
    shape = read_shape(fields, head_dim=128)
    return _dflash(fields, shape, (), kind="DFlash")


def dspark(fields: Fields) -> Anatomy:
    """DSpark: a table of what follows what, and a guess how far to trust a draft."""
    shape = read_shape(fields, head_dim=128)
    own = fields.section("dflash_config") or fields
    own = fields if fields.has("markov_rank") else own
    if (own.optional_text("markov_head_type") or "vanilla") != "vanilla":
        raise NotModelledError(
            f"A DSpark draft with a {own.optional_text('markov_head_type')!r} Markov head is not"
            " modelled.",
            hint="Those with the plain one (`vanilla`) are.",
        )
    rank = own.integer("markov_rank", most=_MOST_RANK)
    weights = _table("markov_head.markov_w1", rank, shape)
    weights += _table("markov_head.markov_w2", rank, shape)
    if own.flag("enable_confidence_head", default=False):
        width = shape.hidden
        if own.flag("confidence_head_with_markov", default=True):
            width += rank
        weights += _whole("confidence_head.proj", (1, width), bias=True)
    return _dflash(fields, shape, weights, kind="DSpark")


def domino(fields: Fields) -> Anatomy:
    """Domino: a recurrent correction over the block's tokens."""
    shape = read_shape(fields, head_dim=128)
    own = fields.section("dflash_config") or fields
    inner = own.integer("emb_dim", most=_MOST_RANK)
    state = own.integer("gru_hidden_dim", most=_MOST_RANK)
    weights = _whole("prefix_gru.ih", (3 * state, shape.hidden))
    weights += _whole("prefix_gru.hh", (3 * state, state))
    weights += _whole("embed_proj.0", (inner, shape.hidden + state))
    weights += _whole("embed_proj.2", (shape.vocab, inner))
    return _dflash(fields, shape, weights, kind="Domino")


def _dflash(fields: Fields, shape: DecoderShape, more: Weights, *, kind: str) -> Anatomy:
    own = fields.section("dflash_config")
    count = stated_layers(own, "target_layer_ids") or stated_layers(fields, "target_layer_ids")
    intermediate = fields.integer("intermediate_size")
    bias = fields.flag("attention_bias", default=False)
    vocabulary = fields.optional_integer("draft_vocab_size", most=shape.vocab) or shape.vocab
    has_head = vocabulary != shape.vocab or fields.flag("has_own_lm_head", default=False)
    return draft(
        shape,
        fusion(features(fields, shape, count or shape.layers), shape.hidden)
        + attention(shape, qkv_bias=bias, out_bias=bias)
        + qk_norms(shape, (shape.head_dim, shape.head_dim))
        + gated_mlp(shape.hidden, intermediate, layers=shape.every)
        + layer_norms(shape)
        + end_norm("hidden_norm", shape.hidden)
        + end_norm("norm", shape.hidden)
        + (own_head(vocabulary, shape) if has_head else ())
        + more,
        layers=_layers(fields, own, shape),
        intermediate=intermediate,
        kind=kind,
        shared="the embedding" if has_head else "embedding and head",
    )


def _layers(fields: Fields, own: Fields | None, shape: DecoderShape) -> tuple[Layer, ...]:
    types = read_layer_types(fields, shape.layers) or (FULL,) * shape.layers
    windowed = own is not None and own.flag("use_swa", default=False)
    if windowed and SLIDING not in types:
        types = (SLIDING,) * shape.layers
    return typed_layers(fields, shape, types, window=read_window(fields))


def _table(name: str, rank: int, shape: DecoderShape) -> Weights:
    return linear(name, (shape.vocab, rank), component="other", sharding="replicated", place="head")


def _whole(name: str, shape: tuple[int, int], *, bias: bool = False) -> Weights:
    return linear(name, shape, component="other", sharding="replicated", place="head", bias=bias)
