"""Mamba 2: its own family, and the mixer of Bamba, Zamba 2, Falcon-H1, Nemotron-H, Granite 4."""

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
from kvplan.models.formats import Dtype
from kvplan.models.spec import Layer
from kvplan.models.weights import Sharding

MAX_HEADS = 65_536
_ENDS = Ends(embed="embeddings", norm="norm_f")


class Mamba2(BaseModel):
    """Sizes of a Mamba 2 mixer.

    Attributes:
        heads, head_dim: Heads of the state and their channels.
        groups: Groups of heads that share input and output matrices (B and C).
        state: Elements of the state of one channel.
        taps: Width of the convolution.
        bias, out_bias, conv_bias: Whether input and output projection and convolution shift.
        norm: Whether the output is normalized with weights.
        dtype: Type of the state that the configuration prescribes, or None.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    heads: int
    head_dim: int
    groups: int
    state: int
    taps: int
    bias: bool
    out_bias: bool
    conv_bias: bool
    norm: bool = True
    dtype: Dtype | None = None

    @property
    def inner(self) -> int:
        """All channels."""
        return self.heads * self.head_dim


def mamba2(fields: Fields) -> Anatomy:
    """Mamba 2 and Codestral Mamba: nothing but mixers, no attention."""
    shape = _shape(fields)
    sizes = _sizes(fields, shape.hidden)
    return decoder(
        shape,
        mamba2_mixer("mixer", sizes, shape.hidden, shape.every) + layer_norms(shape, ("norm",)),
        layers=(Layer(caches=(mamba2_cache(sizes),)),) * shape.layers,
        intermediate=sizes.inner,
        tied=fields.flag("tie_word_embeddings", default=False),
        ends=_ENDS,
    )


def mamba2_cache(sizes: Mamba2) -> RecurrentCache:
    """Convolution inputs of channels and of groups, and the state (heads, head_dim, state).

    Groups are split over ranks like heads; a single one is kept by every rank.
    """
    inputs = StateTensor(name="conv groups", shape=(sizes.groups, 2 * sizes.state, sizes.taps - 1))
    state = StateTensor(
        name="ssm", shape=(sizes.heads, sizes.head_dim, sizes.state), dtype=sizes.dtype
    )
    return only(conv_state(sizes.inner, sizes.taps), inputs, state)


def mamba2_mixer(name: str, sizes: Mamba2, hidden: int, layers: tuple[int, ...]) -> Weights:
    """The weights of one mixer a layer.

    Sharding: vLLM v0.33.0 vllm/model_executor/layers/mamba/mamba_mixer2.py.
    """
    weights = _in_proj(f"{name}.in_proj", sizes, hidden, layers)
    weights += _conv1d(f"{name}.conv1d", sizes, layers)
    vectors = (f"{name}.dt_bias", f"{name}.A_log", f"{name}.D")
    weights += per_channel(vectors, sizes.heads, layers)
    if sizes.norm:
        weights += per_channel((f"{name}.norm.weight",), sizes.inner, layers)
    return weights + linear(
        f"{name}.out_proj",
        (hidden, sizes.inner),
        component="recurrent",
        sharding="row",
        layers=layers,
        bias=sizes.out_bias,
    )


def _in_proj(name: str, sizes: Mamba2, hidden: int, layers: tuple[int, ...]) -> Weights:
    grouped = sizes.groups * sizes.state
    parts: tuple[tuple[str, int, Sharding], ...] = (
        ("[z]", sizes.inner, "column"),
        ("[x]", sizes.inner, "column"),
        ("[b]", grouped, "kv_heads"),
        ("[c]", grouped, "kv_heads"),
        ("[dt]", sizes.heads, "column"),
    )
    weights: Weights = ()
    for part, rows, sharding in parts:
        weights += linear(
            name,
            (rows, hidden),
            component="recurrent",
            sharding=sharding,
            heads=sizes.groups if sharding == "kv_heads" else 1,
            layers=layers,
            bias=sizes.bias,
            part=part,
        )
    return weights


def _conv1d(name: str, sizes: Mamba2, layers: tuple[int, ...]) -> Weights:
    weights = convolution(
        name, sizes.inner, sizes.taps, layers=layers, bias=sizes.conv_bias, part="[x]"
    )
    for part in ("[b]", "[c]"):
        weights += convolution(
            name,
            sizes.groups * sizes.state,
            sizes.taps,
            layers=layers,
            bias=sizes.conv_bias,
            sharding="kv_heads",
            heads=sizes.groups,
            part=part,
        )
    return weights


def checked_sizes(fields: Fields, sizes: Mamba2, inner: int | None = None) -> Mamba2:
    """The sizes themselves, if they go together.

    Raises:
        InputError: heads that don't make up the inner width, or can't share the groups evenly.
    """
    if inner is not None and sizes.inner != inner:
        raise fields.conflict(
            f"{sizes.heads} state heads of {sizes.head_dim} don't make up {inner} channels."
        )
    if sizes.heads % sizes.groups:
        raise fields.conflict(
            f"{sizes.heads} state heads can't share {sizes.groups} groups evenly."
        )
    return sizes


def read_hybrid_sizes(fields: Fields, inner: int, *, out_bias: str, norm: bool) -> Mamba2:
    """The sizes under the names of Bamba, Falcon-H1 and Granite 4.

    Args:
        fields: The configuration.
        inner: All channels.
        out_bias: The flag for the bias of the output projection.
        norm: Whether the output is normalized with weights.

    Raises:
        InputError: a size is none, or does not go with the others.
    """
    heads = fields.integer("mamba_n_heads", default=128, most=MAX_HEADS)
    head_dim = _head_dim(fields, inner, heads)
    sizes = Mamba2(
        heads=heads,
        head_dim=head_dim,
        groups=fields.integer("mamba_n_groups", default=1, most=MAX_HEADS),
        state=fields.integer("mamba_d_state", default=256),
        taps=read_taps(fields, "mamba_d_conv", default=4),
        bias=fields.flag("mamba_proj_bias", default=False),
        out_bias=fields.flag(out_bias, default=False),
        conv_bias=fields.flag("mamba_conv_bias", default=True),
        norm=norm,
    )
    return checked_sizes(fields, sizes, inner)


def _head_dim(fields: Fields, inner: int, heads: int) -> int:
    if fields.raw("mamba_d_head") != "auto" and fields.has("mamba_d_head"):
        return fields.integer("mamba_d_head")
    if inner % heads:
        raise fields.conflict(f"{inner} channels are not a multiple of {heads} state heads.")
    fields.fill("mamba_d_head", inner // heads)
    return inner // heads


def _sizes(fields: Fields, hidden: int) -> Mamba2:
    bias = fields.flag("use_bias", default=False)
    sizes = Mamba2(
        heads=fields.integer("num_heads", default=128, most=MAX_HEADS),
        head_dim=fields.integer("head_dim", default=64),
        groups=fields.integer("n_groups", default=8, most=MAX_HEADS),
        state=fields.integer("state_size", default=128),
        taps=read_taps(fields, "conv_kernel", default=4),
        bias=bias,
        out_bias=bias,
        conv_bias=fields.flag("use_conv_bias", default=True),
    )
    return checked_sizes(fields, sizes, fields.integer("expand", default=2, most=1024) * hidden)


def _shape(fields: Fields) -> DecoderShape:
    return DecoderShape(
        layers=fields.integer("num_hidden_layers", default=64, most=MAX_LAYERS),
        hidden=fields.integer("hidden_size", default=4096),
        heads=0,
        kv_heads=0,
        head_dim=0,
        vocab=fields.integer("vocab_size", default=32_768),
    )
