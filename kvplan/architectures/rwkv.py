"""RWKV 4, 5 and 6: a state and the last token instead of keys and values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from pydantic import BaseModel, ConfigDict

from kvplan.architectures.anatomy import Anatomy, Ends, decoder
from kvplan.architectures.blocks import Weights, linear, norm, vector
from kvplan.architectures.fields import MAX_LAYERS, Fields
from kvplan.architectures.recurrent import only
from kvplan.architectures.shapes import DecoderShape
from kvplan.models.caches import RecurrentCache, StateTensor
from kvplan.models.spec import Layer
from kvplan.models.weights import Component, Sharding

_ENDS = Ends(embed="embeddings", norm="ln_out", norm_bias=True, head="head")
_ATTENTION, _FEED = "attention", "feed_forward"
_WIDE = 4096  # from here on, RWKV 6 makes its mixes and decays through twice the rank


class Rwkv(BaseModel):
    """Sizes of an RWKV model.

    Attributes:
        shape: Layers, hidden size and vocabulary; heads of the state.
        inner: Channels of receptance, keys and values.
        width: Of the feed-forward.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    shape: DecoderShape
    inner: int
    width: int


def rwkv(fields: Fields) -> Anatomy:
    """RWKV 4: a numerator, a denominator and a maximum a channel."""
    sizes = _sizes(fields, heads=False, ratio=(4, 1))
    inner = sizes.inner
    mixes = ("time_mix_key", "time_mix_value", "time_mix_receptance")
    weights = _vectors(_ATTENTION, ("time_decay", "time_first"), inner, sizes.shape)
    weights += _vectors(_ATTENTION, mixes, sizes.shape.hidden, sizes.shape)
    weights += _projections(sizes, ("key", "value", "receptance"))
    state = StateTensor(name="recurrent", shape=(inner, 3), dtype="float32")
    return _rwkv(fields, sizes, weights, state, mixes=("time_mix_key", "time_mix_receptance"))


def rwkv5(fields: Fields) -> Anatomy:
    """RWKV 5.2: mlc-ai/mlc-llm@01ced331a9:python/mlc_llm/model/rwkv5/rwkv5_model.py."""
    sizes = _sizes(fields, heads=True, ratio=(7, 2))
    mixes = tuple(f"time_mix_{name}" for name in ("gate", "key", "value", "receptance"))
    weights = _vectors(_ATTENTION, ("time_decay", "time_faaaa"), sizes.inner, sizes.shape)
    weights += _vectors(_ATTENTION, mixes, sizes.shape.hidden, sizes.shape)
    weights += _heads(sizes)
    return _rwkv(
        fields, sizes, weights, _matrix(sizes), mixes=("time_mix_key", "time_mix_receptance")
    )


def rwkv6(fields: Fields) -> Anatomy:
    """RWKV 6: mlc-ai/mlc-llm@01ced331a9:python/mlc_llm/model/rwkv6/rwkv6_model.py."""
    sizes = _sizes(fields, heads=True, ratio=(7, 2))
    shape = sizes.shape
    mixes = tuple(f"time_maa_{name}" for name in "xwkvrg")
    weights = _vectors(_ATTENTION, ("time_decay", "time_faaaa"), sizes.inner, shape)
    weights += _vectors(_ATTENTION, mixes, shape.hidden, shape)
    twice = 2 if shape.hidden == _WIDE else 1
    for name, size in (
        ("time_maa_w1", (shape.hidden, 5 * 32 * twice)),
        ("time_maa_w2", (5 * 32 * twice, shape.hidden)),
        ("time_decay_w1", (shape.hidden, 64 * twice)),
        ("time_decay_w2", (64 * twice, sizes.inner)),
    ):
        weights += _matrix_of(f"{_ATTENTION}.{name}", size, shape)
    weights += _heads(sizes)
    return _rwkv(fields, sizes, weights, _matrix(sizes), mixes=("time_maa_k", "time_maa_r"))


def shifting(hidden: int, state: StateTensor) -> RecurrentCache:
    """The state, and the last token that attention and feed-forward saw, on every rank."""
    last = StateTensor(name="shift", shape=(hidden,), split=None)
    return only(state, last, last)


def _matrix(sizes: Rwkv) -> StateTensor:
    heads, head_dim = sizes.shape.heads, sizes.shape.head_dim
    return StateTensor(name="recurrent", shape=(heads, head_dim, head_dim), dtype="float32")


def _rwkv(
    fields: Fields, sizes: Rwkv, mixer: Weights, state: StateTensor, *, mixes: Sequence[str]
) -> Anatomy:
    shape = sizes.shape
    body = mixer + _feed_forward(sizes, mixes)
    for name in ("ln1", "ln2"):
        body += norm(name, shape.hidden, layers=shape.every, bias=True)
    body += norm("pre_ln", shape.hidden, layers=shape.every[:1], bias=True)
    return decoder(
        shape,
        body,
        layers=(Layer(caches=(shifting(shape.hidden, state),)),) * shape.layers,
        intermediate=sizes.width,
        tied=fields.flag("tie_word_embeddings", default=False),
        ends=_ENDS,
    )


def _heads(sizes: Rwkv) -> Weights:
    normed = norm(
        f"{_ATTENTION}.ln_x",
        sizes.shape.hidden,
        layers=sizes.shape.every,
        bias=True,
        component="recurrent",
    )
    return _projections(sizes, ("key", "value", "receptance", "gate")) + normed


def _projections(sizes: Rwkv, names: Sequence[str]) -> Weights:
    hidden = sizes.shape.hidden
    weights: Weights = ()
    for name in names:
        weights += _linear(f"{_ATTENTION}.{name}", (sizes.inner, hidden), sizes.shape, "column")
    return weights + _linear(f"{_ATTENTION}.output", (hidden, sizes.inner), sizes.shape, "row")


def _feed_forward(sizes: Rwkv, mixes: Sequence[str]) -> Weights:
    shape, hidden = sizes.shape, sizes.shape.hidden
    return (
        _vectors(_FEED, mixes, hidden, shape, component="mlp")
        + _linear(f"{_FEED}.key", (sizes.width, hidden), shape, "column", component="mlp")
        + _linear(f"{_FEED}.receptance", (hidden, hidden), shape, "column", component="mlp")
        + _linear(f"{_FEED}.value", (hidden, sizes.width), shape, "row", component="mlp")
    )


def _vectors(
    part: str,
    names: Sequence[str],
    size: int,
    shape: DecoderShape,
    *,
    component: Component = "recurrent",
) -> Weights:
    weights: Weights = ()
    for name in names:
        weights += vector(f"{part}.{name}", size, component=component, layers=shape.every)
    return weights


def _linear(
    name: str,
    size: tuple[int, int],
    shape: DecoderShape,
    sharding: Sharding,
    *,
    component: Component = "recurrent",
) -> Weights:
    return linear(name, size, component=component, sharding=sharding, layers=shape.every)


def _matrix_of(name: str, size: tuple[int, int], shape: DecoderShape) -> Weights:
    """A matrix whose name does not end in ``.weight``."""
    plain = _linear(name, size, shape, "replicated")
    return tuple(weight.model_copy(update={"name": name}) for weight in plain)


def _sizes(fields: Fields, *, heads: bool, ratio: tuple[int, int]) -> Rwkv:
    hidden = fields.integer("hidden_size", default=4096)
    inner = fields.optional_integer("attention_hidden_size") or hidden
    head_dim = fields.integer("head_size", default=64) if heads else 1
    if inner % head_dim:
        raise fields.conflict(f"{inner} channels are not a multiple of heads of {head_dim}.")
    width = fields.optional_integer("intermediate_size")
    wide, narrow = ratio
    shape = DecoderShape(
        layers=fields.integer("num_hidden_layers", default=32, most=MAX_LAYERS),
        hidden=hidden,
        heads=inner // head_dim if heads else 0,
        kv_heads=0,
        head_dim=head_dim,
        vocab=fields.integer("vocab_size", default=65_536 if heads else 50_277),
    )
    automatic = max(32, hidden * wide // narrow // 32 * 32)
    return Rwkv(shape=shape, inner=inner, width=width or automatic)
