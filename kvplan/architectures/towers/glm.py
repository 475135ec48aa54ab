"""GLM-4.1V to 4.6V: a vision transformer with a gated merger.

Shapes: transformers v5.24.0 src/transformers/models/glm4v/modeling_glm4v.py.
"""

from __future__ import annotations

from kvplan.architectures.blocks import Weights
from kvplan.architectures.fields import MAX_LAYERS, Fields
from kvplan.architectures.towers.parts import (
    LayerForm,
    TowerSizes,
    layers,
    read_patches,
    read_pixels,
    tower_linear,
    tower_norm,
)

_FORM = LayerForm(
    qkv=("attn.qkv",),
    out="attn.proj",
    ups=("mlp.gate_proj", "mlp.up_proj"),
    down="mlp.down_proj",
    norms=("norm1", "norm2"),
    out_bias=False,
    mlp_bias=False,
    norm_bias=False,
)
_MAX_MERGE = 64


def glm4v_vit(fields: Fields) -> Weights:
    """The tower with its merger. Defaults: Glm4vVisionConfig."""
    hidden = fields.integer("hidden_size", default=1536)
    out = fields.integer("out_hidden_size", default=4096)
    # Feed-forwards are as wide as the output; the stated width is the merger's.
    sizes = TowerSizes(
        hidden=hidden,
        width=out,
        depth=fields.integer("depth", default=24, most=MAX_LAYERS),
    )
    form = _FORM.model_copy(update={"qkv_bias": fields.flag("attention_bias", default=False)})
    return (
        tower_linear("patch_embed.proj", (hidden, _pixels(fields)), bias=True)
        + tower_linear(
            "embeddings.position_embedding",
            (read_patches(fields, image=336, patch=14), hidden),
        )
        + tower_norm("post_conv_layernorm", hidden)
        + layers(sizes, form)
        + tower_norm("post_layernorm", hidden)
        + _merger(fields, hidden, out)
    )


def _merger(fields: Fields, hidden: int, out: int) -> Weights:
    merge = fields.integer("spatial_merge_size", default=2, most=_MAX_MERGE)
    width = fields.integer("intermediate_size", default=13696)
    weights = tower_linear("downsample", (out, hidden * merge * merge), bias=True)
    weights += tower_linear("merger.proj", (out, out))
    weights += tower_norm("merger.post_projection_norm", out, bias=True)
    for name in ("gate_proj", "up_proj"):
        weights += tower_linear(f"merger.{name}", (width, out), "column")
    return weights + tower_linear("merger.down_proj", (out, width), "row")


def _pixels(fields: Fields) -> int:
    frames = fields.integer("temporal_patch_size", default=2, most=_MAX_MERGE)
    return read_pixels(fields, patch=14, channels="in_channels", frames=frames)
