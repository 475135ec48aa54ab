"""Mamba 1: Mamba and Falcon Mamba, and the mixer that Jamba puts beside attention."""

from __future__ import annotations

from typing import ClassVar

from pydantic import BaseModel, ConfigDict

from kvplan.architectures.anatomy import Anatomy, Ends, decoder
from kvplan.architectures.blocks import Weights, layer_norms, linear
from kvplan.architectures.fields import MAX_LAYERS, Fields
from kvplan.architectures.recurrent import (
    conv_state,
    convolution,
    only,
    per_channel,
    read_taps,
)
from kvplan.architectures.shapes import DecoderShape
from kvplan.models.caches import RecurrentCache, StateTensor
from kvplan.models.formats import ceil_div
from kvplan.models.spec import Layer

_ENDS = Ends(embed="embeddings", norm="norm_f")
_RANK_DIVISOR = 16  # time_step_rank "auto": a sixteenth of the hidden size


class Mamba(BaseModel):
    """Sizes of a Mamba 1 mixer.

    Attributes:
        inner: Channels.
        state: Elements of the state of one channel.
        taps: Width of the convolution.
        rank: Rank of the time step.
        bias, conv_bias: Whether projections and convolution shift.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    inner: int
    state: int
    taps: int
    rank: int
    bias: bool
    conv_bias: bool


def mamba(fields: Fields) -> Anatomy:
    """Mamba 1: nothing but mixers, no attention."""
    return _mamba(fields)


def falcon_mamba(fields: Fields) -> Anatomy:
    """Falcon Mamba: Mamba with normalizations that have no weights."""
    return _mamba(fields)


def mamba_cache(sizes: Mamba) -> RecurrentCache:
    """Convolution inputs (inner, taps - 1) and state (inner, state)."""
    return only(
        conv_state(sizes.inner, sizes.taps),
        StateTensor(name="ssm", shape=(sizes.inner, sizes.state)),
    )


def mamba_mixer(name: str, sizes: Mamba, hidden: int, layers: tuple[int, ...]) -> Weights:
    """The weights of one mixer a layer.

    Sharding: vLLM v0.33.0 vllm/model_executor/layers/mamba/mamba_mixer.py.
    """
    inner = sizes.inner
    weights: Weights = ()
    for part in ("[x]", "[z]"):
        weights += linear(
            f"{name}.in_proj",
            (inner, hidden),
            component="recurrent",
            sharding="column",
            layers=layers,
            bias=sizes.bias,
            part=part,
        )
    weights += convolution(f"{name}.conv1d", inner, sizes.taps, layers=layers, bias=sizes.conv_bias)
    weights += _selection(name, sizes, layers)
    return weights + linear(
        f"{name}.out_proj",
        (hidden, inner),
        component="recurrent",
        sharding="row",
        layers=layers,
        bias=sizes.bias,
    )


def _selection(name: str, sizes: Mamba, layers: tuple[int, ...]) -> Weights:
    """What makes time step, input and output depend on the token."""
    inputs = linear(
        f"{name}.x_proj",
        (sizes.rank + 2 * sizes.state, sizes.inner),
        component="recurrent",
        sharding="row",
        layers=layers,
    )
    step = linear(
        f"{name}.dt_proj",
        (sizes.inner, sizes.rank),
        component="recurrent",
        sharding="column",
        layers=layers,
        bias=True,
    )
    # A is stored like the weight of a projection, under a name of its own.
    decay = tuple(
        weight.model_copy(update={"name": f"{name}.A_log", "shape": (sizes.inner, sizes.state)})
        for weight in step[:1]
    )
    return inputs + step + decay + per_channel((f"{name}.D",), sizes.inner, layers)


def read_rank(fields: Fields, name: str, hidden: int) -> int:
    """The rank of the time step: a number, or the text ``auto``."""
    automatic = ceil_div(hidden, _RANK_DIVISOR)
    if fields.raw(name) == "auto":
        return automatic
    return fields.integer(name, default=automatic)


def _mamba(fields: Fields) -> Anatomy:
    shape = _shape(fields)
    sizes = _sizes(fields, shape.hidden)
    return decoder(
        shape,
        mamba_mixer("mixer", sizes, shape.hidden, shape.every) + layer_norms(shape, ("norm",)),
        layers=(Layer(caches=(mamba_cache(sizes),)),) * shape.layers,
        intermediate=sizes.inner,
        tied=fields.flag("tie_word_embeddings", default=True),
        ends=_ENDS,
    )


def _sizes(fields: Fields, hidden: int) -> Mamba:
    # Published files state the inner width; Falcon Mamba's expansion of 16 is not its own.
    inner = fields.optional_integer("intermediate_size")
    return Mamba(
        inner=inner or fields.integer("expand", default=2, most=1024) * hidden,
        state=fields.integer("state_size", default=16),
        taps=read_taps(fields, "conv_kernel", default=4),
        rank=read_rank(fields, "time_step_rank", hidden),
        bias=fields.flag("use_bias", default=False),
        conv_bias=fields.flag("use_conv_bias", default=True),
    )


def _shape(fields: Fields) -> DecoderShape:
    return DecoderShape(
        layers=fields.integer("num_hidden_layers", default=32, most=MAX_LAYERS),
        hidden=fields.integer("hidden_size", default=768),
        heads=0,
        kv_heads=0,
        head_dim=0,
        vocab=fields.integer("vocab_size", default=50_280),
    )
