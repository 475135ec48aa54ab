"""Kimi Delta Attention (KDA): the linear attention of Kimi Linear, Kimi K3 and Ling 3."""

from __future__ import annotations

from typing import ClassVar

from pydantic import BaseModel, ConfigDict

from kvplan.architectures.blocks import Weights, linear, norm
from kvplan.architectures.recurrent import conv_state, convolution, only, per_channel
from kvplan.models.caches import RecurrentCache, StateTensor
from kvplan.models.weights import Sharding


class Kda(BaseModel):
    """Sizes of KDA.

    Attributes:
        heads, head_dim: Heads, and the elements of a head's query, key and value.
        taps: Width of the convolutions over queries, keys and values.
        narrow_forget, narrow_gate: Whether the forget gate and the output gate are made in two
            steps, through as many channels as a head has.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    heads: int
    head_dim: int
    taps: int
    narrow_forget: bool
    narrow_gate: bool

    @property
    def inner(self) -> int:
        """All channels of queries, keys or values."""
        return self.heads * self.head_dim


def kda_cache(sizes: Kda) -> RecurrentCache:
    """Convolution inputs of queries, keys and values, and a state (heads, dim, dim).

    The state is kept in float32: vLLM v0.33.0 vllm/model_executor/layers/mamba/mamba_utils.py
    kda_state_dtype.
    """
    shape = (sizes.heads, sizes.head_dim, sizes.head_dim)
    return only(
        conv_state(3 * sizes.inner, sizes.taps),
        StateTensor(name="recurrent", shape=shape, dtype="float32"),
    )


def kda_mixer(name: str, sizes: Kda, hidden: int, layers: tuple[int, ...]) -> Weights:
    """The weights of one mixer a layer.

    Sharding: vLLM v0.33.0 vllm/model_executor/layers/mamba/gdn/kimi_gdn_linear_attn.py.
    """
    weights: Weights = ()
    for kind in "qkv":
        weights += _linear(f"{name}.{kind}_proj", (sizes.inner, hidden), layers)
        weights += convolution(
            f"{name}.{kind}_conv1d", sizes.inner, sizes.taps, layers=layers, bias=False
        )
    weights += _linear(f"{name}.b_proj", (sizes.heads, hidden), layers)
    weights += _gate(f"{name}.f", sizes, hidden, layers, narrow=sizes.narrow_forget)
    weights += _gate(f"{name}.g", sizes, hidden, layers, narrow=sizes.narrow_gate)
    return (
        weights
        + per_channel((f"{name}.dt_bias",), sizes.inner, layers)
        + per_channel((f"{name}.A_log",), sizes.heads, layers)
        + norm(f"{name}.o_norm", sizes.head_dim, layers=layers, component="recurrent")
        + _linear(f"{name}.o_proj", (hidden, sizes.inner), layers, "row")
    )


def _gate(name: str, sizes: Kda, hidden: int, layers: tuple[int, ...], *, narrow: bool) -> Weights:
    if not narrow:
        return _linear(f"{name}_proj", (sizes.inner, hidden), layers)
    down = _linear(f"{name}_a_proj", (sizes.head_dim, hidden), layers, "replicated")
    return down + _linear(f"{name}_b_proj", (sizes.inner, sizes.head_dim), layers)


def _linear(
    name: str, size: tuple[int, int], layers: tuple[int, ...], sharding: Sharding = "column"
) -> Weights:
    return linear(name, size, component="recurrent", sharding=sharding, layers=layers)
