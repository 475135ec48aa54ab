"""Gemma 3n's ear, a conformer, and what leads from ear and eye into the text model.

Shapes: transformers v5.24.0 src/transformers/models/gemma3n/modeling_gemma3n.py.
"""

from __future__ import annotations

from kvplan.architectures.blocks import Weights
from kvplan.architectures.fields import MAX_LAYERS, Fields
from kvplan.architectures.towers.parts import (
    repeated,
    tower_linear,
    tower_norm,
    tower_table,
    tower_vector,
)
from kvplan.models.weights import Component

_MOST = 65_536
_KERNEL = 3 * 3
_HALVINGS = 4


def gemma3n_audio(fields: Fields) -> tuple[Weights, int]:
    """The ear and its width. Defaults: Gemma3nAudioConfig."""
    hidden = fields.integer("hidden_size", default=1536)
    heads = fields.integer("conf_num_attention_heads", default=8, most=hidden)
    depth = fields.integer("conf_num_hidden_layers", default=12, most=MAX_LAYERS)
    taps = fields.integer("conf_conv_kernel_size", default=5, most=_MOST)
    layer = (
        _feed_forward("ffw_layer_start", hidden)
        + _attention(hidden, hidden // heads)
        + _convolution(hidden, taps)
        + _feed_forward("ffw_layer_end", hidden)
        + _norm("norm", hidden)
    )
    return _subsampling(fields, hidden) + repeated(layer, depth), hidden


def embedder(fields: Fields, width: int, hidden: int, component: Component) -> Weights:
    """From a tower into the text model; tokens of its own stand for where a tower's begin."""
    name = "embed_audio" if component == "audio" else "embed_vision"
    rows = fields.integer("vocab_size", default=128)
    weights = tower_table(f"{name}.embedding.weight", (rows, width), component=component)
    for norm in ("hard_embedding_norm", "soft_embedding_norm"):
        weights += tower_norm(f"{name}.{norm}", width, component=component)
    return weights + tower_linear(
        f"{name}.embedding_projection", (hidden, width), component=component
    )


def _subsampling(fields: Fields, hidden: int) -> Weights:
    channels = fields.integers("sscp_conv_channel_size", least=1, most=_MOST)
    first, second = channels if channels is not None and len(channels) == 2 else (128, 32)
    bands = fields.integer("input_feat_size", default=128, most=_MOST)
    name = "subsample_conv_projection"
    return (
        _linear(f"{name}.conv_0.conv", first, _KERNEL)
        + _norm(f"{name}.conv_0.norm", first)
        + _linear(f"{name}.conv_1.conv", second, _KERNEL * first)
        + _norm(f"{name}.conv_1.norm", second)
        + _linear(f"{name}.input_proj_linear", hidden, max(1, bands // _HALVINGS) * second)
    )


def _attention(hidden: int, head_dim: int) -> Weights:
    weights = tower_vector("attention.attn.per_dim_scale", head_dim, component="audio")
    for name in ("q_proj", "k_proj", "v_proj", "relative_position_embedding.pos_proj"):
        weights += _linear(f"attention.attn.{name}", hidden, hidden)
    weights += _linear("attention.post", hidden, hidden)
    return weights + _norm("attention.pre_attn_norm", hidden) + _norm("post_norm", hidden)


def _convolution(hidden: int, taps: int) -> Weights:
    return (
        _norm("lconv1d.pre_layer_norm", hidden)
        + _linear("lconv1d.linear_start", 2 * hidden, hidden)
        + _linear("lconv1d.depthwise_conv1d", hidden, taps)
        + _norm("lconv1d.conv_norm", hidden)
        + _linear("lconv1d.linear_end", hidden, hidden)
    )


def _feed_forward(name: str, hidden: int) -> Weights:
    return (
        _norm(f"{name}.pre_layer_norm", hidden)
        + _linear(f"{name}.ffw_layer_1", 4 * hidden, hidden)
        + _linear(f"{name}.ffw_layer_2", hidden, 4 * hidden)
        + _norm(f"{name}.post_layer_norm", hidden)
    )


def _linear(name: str, out: int, inputs: int) -> Weights:
    return tower_linear(name, (out, inputs), component="audio")


def _norm(name: str, size: int) -> Weights:
    return tower_norm(name, size, component="audio")
