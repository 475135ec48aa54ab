"""Gemma 4's eye and ear.

Shapes: transformers v5.24.0 src/transformers/models/gemma4/modeling_gemma4.py.
"""

from __future__ import annotations

from kvplan.architectures.blocks import Weights
from kvplan.architectures.fields import MAX_LAYERS, Fields
from kvplan.architectures.towers.parts import (
    LayerForm,
    layers,
    read_pixels,
    read_sizes,
    repeated,
    tower_linear,
    tower_norm,
    tower_table,
    tower_vector,
)
from kvplan.models.weights import Sharding

_MAX_CHANNELS = 65_536
_FORM = LayerForm(
    qkv=("self_attn.q_proj.linear", "self_attn.k_proj.linear", "self_attn.v_proj.linear"),
    out="self_attn.o_proj.linear",
    ups=("mlp.gate_proj.linear", "mlp.up_proj.linear"),
    down="mlp.down_proj.linear",
    norms=(
        "input_layernorm",
        "post_attention_layernorm",
        "pre_feedforward_layernorm",
        "post_feedforward_layernorm",
    ),
    qkv_bias=False,
    out_bias=False,
    mlp_bias=False,
    norm_bias=False,
)


def gemma4_vision(fields: Fields) -> tuple[Weights, int]:
    """The eye and its width. Defaults: Gemma4VisionConfig."""
    plain = read_sizes(fields, hidden=768, width=3072, depth=16)
    heads = fields.integer("num_attention_heads", default=12)
    kept = fields.integer("num_key_value_heads", default=12)
    head_dim = fields.integer("head_dim", default=64)
    sizes = plain.model_copy(update={"queries": heads * head_dim, "keys": kept * head_dim})
    positions = fields.integer("position_embedding_size", default=10_240)
    bias = fields.flag("attention_bias", default=False)
    form = _FORM.model_copy(update={"qkv_bias": bias, "out_bias": bias})
    extra = tower_norm("self_attn.q_norm", head_dim) + tower_norm("self_attn.k_norm", head_dim)
    return (
        # One table for rows and one for columns.
        tower_table("patch_embedder.position_embedding_table", (2 * positions, sizes.hidden))
        + tower_linear("patch_embedder.input_proj", (sizes.hidden, read_pixels(fields, patch=16)))
        + layers(sizes, form, extra=extra)
        + _standardization(fields, sizes.hidden),
        sizes.hidden,
    )


def gemma4_audio(fields: Fields) -> tuple[Weights, int]:
    """The ear (a conformer) and the width it puts out. Defaults: Gemma4AudioConfig."""
    hidden = fields.integer("hidden_size", default=1024)
    depth = fields.integer("num_hidden_layers", default=12, most=MAX_LAYERS)
    heads = fields.integer("num_attention_heads", default=8, most=hidden)
    taps = fields.integer("conv_kernel_size", default=5, most=_MAX_CHANNELS)
    out = fields.integer("output_proj_dims", default=1536)
    layer = _attention(hidden, hidden // heads) + _convolution(hidden, taps)
    for name in ("feed_forward1", "feed_forward2"):
        layer += _feed_forward(name, hidden)
    layer += _norm("norm_out", hidden)
    return (
        _subsampling(fields, hidden)
        + repeated(layer, depth)
        + _linear("output_proj", (out, hidden), bias=True),
        out,
    )


def _standardization(fields: Fields, hidden: int) -> Weights:
    """Two buffers: stored and loaded, but no parameters."""
    if not fields.flag("standardize", default=False):
        return ()
    both = tower_vector("std_bias", hidden) + tower_vector("std_scale", hidden)
    return tuple(weight.model_copy(update={"elements": 0}) for weight in both)


def _subsampling(fields: Fields, hidden: int) -> Weights:
    channels = fields.integers("subsampling_conv_channels", least=1, most=_MAX_CHANNELS)
    first, second = channels if channels is not None and len(channels) == 2 else (128, 32)
    name = "subsample_conv_projection"
    return (
        _linear(f"{name}.layer0.conv", (first, 9))
        + _norm(f"{name}.layer0.norm", first)
        + _linear(f"{name}.layer1.conv", (second, 9 * first))
        + _norm(f"{name}.layer1.norm", second)
        # 128 bands, halved twice.
        + _linear(f"{name}.input_proj_linear", (hidden, 32 * second))
    )


def _attention(hidden: int, head_dim: int) -> Weights:
    weights = tower_vector("self_attn.per_dim_scale", head_dim, component="audio")
    for name in ("q_proj", "k_proj", "v_proj"):
        weights += _linear(f"self_attn.{name}.linear", (hidden, hidden), "column")
    weights += _linear("self_attn.post.linear", (hidden, hidden), "row")
    weights += _linear("self_attn.relative_k_proj", (hidden, hidden), "column")
    return weights + _norm("norm_pre_attn", hidden) + _norm("norm_post_attn", hidden)


def _convolution(hidden: int, taps: int) -> Weights:
    return (
        _linear("lconv1d.linear_start.linear", (2 * hidden, hidden))
        + _linear("lconv1d.linear_end.linear", (hidden, hidden))
        + _linear("lconv1d.depthwise_conv1d", (hidden, taps))
        + _norm("lconv1d.pre_layer_norm", hidden)
        + _norm("lconv1d.conv_norm", hidden)
    )


def _feed_forward(name: str, hidden: int) -> Weights:
    return (
        _linear(f"{name}.ffw_layer_1.linear", (4 * hidden, hidden), "column")
        + _linear(f"{name}.ffw_layer_2.linear", (hidden, 4 * hidden), "row")
        + _norm(f"{name}.pre_layer_norm", hidden)
        + _norm(f"{name}.post_layer_norm", hidden)
    )


def _linear(
    name: str, shape: tuple[int, int], sharding: Sharding = "replicated", *, bias: bool = False
) -> Weights:
    return tower_linear(name, shape, sharding, bias=bias, component="audio")


def _norm(name: str, size: int) -> Weights:
    return tower_norm(name, size, component="audio")
