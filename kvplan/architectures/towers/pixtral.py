"""Pixtral's tower: Llama's layers over patches."""

from __future__ import annotations

from kvplan.architectures.blocks import Weights
from kvplan.architectures.fields import Fields
from kvplan.architectures.towers.parts import (
    LayerForm,
    layers,
    read_pixels,
    read_sizes,
    tower_linear,
    tower_norm,
)

_FORM = LayerForm(
    qkv=("attention.q_proj", "attention.k_proj", "attention.v_proj"),
    out="attention.o_proj",
    ups=("feed_forward.gate_proj", "feed_forward.up_proj"),
    down="feed_forward.down_proj",
    norms=("attention_norm", "ffn_norm"),
    qkv_bias=False,
    out_bias=False,
    mlp_bias=False,
    norm_bias=False,
)


def pixtral(fields: Fields) -> tuple[Weights, int]:
    """A Pixtral tower and its width. Defaults: PixtralVisionConfig."""
    sizes = read_sizes(fields, hidden=1024, width=4096, depth=24)
    pixels = read_pixels(fields, patch=16)
    return (
        tower_linear("patch_conv", (sizes.hidden, pixels))
        + tower_norm("ln_pre", sizes.hidden)
        + layers(sizes, _FORM),
        sizes.hidden,
    )
