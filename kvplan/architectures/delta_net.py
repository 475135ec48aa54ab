"""Gated DeltaNet: the linear attention of Qwen3-Next, Qwen 3.5 and OLMo hybrids."""

from __future__ import annotations

from typing import ClassVar

from pydantic import BaseModel, ConfigDict

from kvplan.architectures.blocks import Weights, linear, norm
from kvplan.architectures.fields import Fields
from kvplan.architectures.recurrent import (
    conv_state,
    convolution,
    only,
    per_channel,
    read_state_dtype,
    read_taps,
)
from kvplan.models.caches import RecurrentCache, StateTensor
from kvplan.models.formats import Dtype

MAX_HEADS = 65_536
NAME = "linear_attn"


class DeltaNet(BaseModel):
    """Sizes of gated DeltaNet.

    Attributes:
        key_heads, key_dim: Heads of queries and keys, and their elements.
        value_heads, value_dim: Heads of values and of the state, and their elements.
        taps: Width of the convolution over queries, keys and values.
        dtype: Type of the state that the configuration prescribes, or None.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    key_heads: int
    key_dim: int
    value_heads: int
    value_dim: int
    taps: int
    dtype: Dtype | None = None

    @property
    def keys(self) -> int:
        """All key channels."""
        return self.key_heads * self.key_dim

    @property
    def values(self) -> int:
        """All value channels."""
        return self.value_heads * self.value_dim

    @property
    def convolved(self) -> int:
        """Channels of queries, keys and values together."""
        return 2 * self.keys + self.values


def read_delta_net(fields: Fields) -> DeltaNet:
    """The sizes under the names of Qwen's classes, which share their defaults.

    Raises:
        InputError: a size is none, or value heads can't share the key heads evenly.
    """
    sizes = DeltaNet(
        key_heads=fields.integer("linear_num_key_heads", default=16, most=MAX_HEADS),
        key_dim=fields.integer("linear_key_head_dim", default=128),
        value_heads=fields.integer("linear_num_value_heads", default=32, most=MAX_HEADS),
        value_dim=fields.integer("linear_value_head_dim", default=128),
        taps=read_taps(fields, "linear_conv_kernel_dim", default=4),
        dtype=read_state_dtype(fields, "mamba_ssm_dtype"),
    )
    return checked_heads(fields, sizes)


def checked_heads(fields: Fields, sizes: DeltaNet) -> DeltaNet:
    """The sizes themselves, if value heads can share the key heads.

    Raises:
        InputError: they can't be shared evenly.
    """
    if sizes.value_heads % sizes.key_heads:
        raise fields.conflict(
            f"{sizes.value_heads} value heads can't share {sizes.key_heads} key heads evenly."
        )
    return sizes


def delta_net_cache(sizes: DeltaNet) -> RecurrentCache:
    """Convolution inputs, and the state (value heads, value elements, key elements)."""
    state = StateTensor(
        name="recurrent",
        shape=(sizes.value_heads, sizes.value_dim, sizes.key_dim),
        dtype=sizes.dtype,
    )
    return only(conv_state(sizes.convolved, sizes.taps), state)


def delta_net_fused(sizes: DeltaNet, hidden: int, layers: tuple[int, ...]) -> Weights:
    """Qwen3-Next: one matrix for query, key, value and gate, one for the two decays."""
    rows = (
        ("in_proj_qkvz", 2 * (sizes.keys + sizes.values)),
        ("in_proj_ba", 2 * sizes.value_heads),
    )
    return _projections(rows, hidden, layers) + _rest(sizes, hidden, layers)


def delta_net_split(sizes: DeltaNet, hidden: int, layers: tuple[int, ...]) -> Weights:
    """Qwen 3.5: the gate and each decay have a matrix of their own."""
    rows = (
        ("in_proj_qkv", sizes.convolved),
        ("in_proj_z", sizes.values),
        ("in_proj_b", sizes.value_heads),
        ("in_proj_a", sizes.value_heads),
    )
    return _projections(rows, hidden, layers) + _rest(sizes, hidden, layers)


def _projections(
    rows: tuple[tuple[str, int], ...], hidden: int, layers: tuple[int, ...]
) -> Weights:
    weights: Weights = ()
    for name, count in rows:
        weights += linear(
            f"{NAME}.{name}",
            (count, hidden),
            component="recurrent",
            sharding="column",
            layers=layers,
        )
    return weights


def _rest(sizes: DeltaNet, hidden: int, layers: tuple[int, ...]) -> Weights:
    """Sharding: vLLM v0.33.0 vllm/model_executor/layers/mamba/gdn/qwen_gdn_linear_attn.py."""
    return (
        convolution(f"{NAME}.conv1d", sizes.convolved, sizes.taps, layers=layers, bias=False)
        + per_channel((f"{NAME}.dt_bias", f"{NAME}.A_log"), sizes.value_heads, layers)
        + norm(f"{NAME}.norm", sizes.value_dim, layers=layers, component="recurrent")
        + linear(
            f"{NAME}.out_proj",
            (hidden, sizes.values),
            component="recurrent",
            sharding="row",
            layers=layers,
        )
    )
