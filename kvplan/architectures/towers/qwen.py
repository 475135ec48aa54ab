"""Qwen's vision transformers: 2-VL, 2.5-VL, 3-VL, and those of Omni and EXAONE 4.5.

They look at two frames at once and merge neighbouring patches at the end. Shapes: transformers
v5.24.0 src/transformers/models/{qwen2_vl,qwen2_5_vl,qwen3_vl,exaone4_5}/modeling_*.py.
"""

from __future__ import annotations

from kvplan.architectures.blocks import Weights
from kvplan.architectures.fields import MAX_LAYERS, Fields
from kvplan.architectures.towers.parts import (
    LayerForm,
    TowerSizes,
    layers,
    read_pixels,
    read_sizes,
    repeated,
    tower_linear,
    tower_norm,
)

_FIRST = LayerForm(qkv=("attn.qkv",), out="attn.proj", norms=("norm1", "norm2"))
_APART = ("attn.q", "attn.k", "attn.v")
_SECOND = _FIRST.model_copy(
    update={
        "ups": ("mlp.gate_proj", "mlp.up_proj"),
        "down": "mlp.down_proj",
        "norm_bias": False,
    }
)
_THIRD = _FIRST.model_copy(update={"ups": ("mlp.linear_fc1",), "down": "mlp.linear_fc2"})
_MAX_MERGE = 64
_MAX_RATIO = 1024


def qwen2_vit(fields: Fields) -> Weights:
    """Qwen2-VL. Defaults: Qwen2VLVisionConfig."""
    hidden = fields.integer("embed_dim", default=1280)
    ratio = fields.integer("mlp_ratio", default=4, most=_MAX_RATIO)
    depth = fields.integer("depth", default=32, most=MAX_LAYERS)
    merged = hidden * _merge(fields) ** 2
    return (
        tower_linear("patch_embed.proj", (hidden, _pixels(fields, 14)))
        + layers(TowerSizes(hidden=hidden, width=ratio * hidden, depth=depth), _FIRST)
        + tower_norm("merger.ln_q", hidden, bias=True)
        + _mlp("merger.mlp", merged, fields.integer("hidden_size", default=3584))
    )


def qwen2_5_vit(fields: Fields) -> Weights:
    """Qwen2.5-VL. Defaults: Qwen2_5_VLVisionConfig."""
    return _gated(fields, _SECOND, key_heads=None)


def omni_vit(fields: Fields) -> Weights:
    """Qwen2.5-Omni: the same tower with projections apart."""
    return _gated(fields, _SECOND.model_copy(update={"qkv": _APART}), key_heads=None)


def exaone4_5_vit(fields: Fields) -> Weights:
    """EXAONE 4.5: fewer key and value heads. Defaults: Exaone4_5_VisionConfig."""
    return _gated(fields, _SECOND, key_heads=8)


def qwen3_vit(
    fields: Fields, *, merger_mlp: bool = False, deepstack: tuple[int, ...] = (8, 16, 24)
) -> Weights:
    """Qwen3-VL, Qwen3-Omni and Qwen 3.5. Defaults: Qwen3VLVisionConfig.

    Args:
        fields: The tower's configuration.
        merger_mlp: The mergers are named as in Omni; their sizes are the same.
        deepstack: Layers that have a merger of their own, where the file does not say.
    """
    names = ("hidden_size", "intermediate_size", "depth")
    sizes = read_sizes(fields, hidden=1152, width=4304, depth=27, names=names)
    merged = sizes.hidden * _merge(fields) ** 2
    out = fields.integer("out_hidden_size", default=3584)
    deep = fields.integers("deepstack_visual_indexes", least=0, most=MAX_LAYERS)
    if deep is None:
        deep = deepstack
        fields.fill("deepstack_visual_indexes", ", ".join(map(str, deep)) or "none")
    positions = fields.integer("num_position_embeddings", default=2304)
    return (
        tower_linear("patch_embed.proj", (sizes.hidden, _pixels(fields, 16)), bias=True)
        + tower_linear("pos_embed", (positions, sizes.hidden))
        + layers(sizes, _THIRD)
        + _merger("merger.", sizes.hidden, merged, out, mlp=merger_mlp)
        + repeated(_merger("", merged, merged, out, mlp=merger_mlp), len(deep))
    )


def _gated(fields: Fields, form: LayerForm, *, key_heads: int | None) -> Weights:
    names = ("hidden_size", "intermediate_size", "depth")
    sizes = read_sizes(fields, hidden=3584, width=3420, depth=32, names=names)
    if key_heads is not None:
        heads = fields.integer("num_heads", default=16, most=sizes.hidden)
        kept = fields.integer("num_key_value_heads", default=key_heads, most=heads)
        sizes = sizes.model_copy(update={"keys": kept * (sizes.hidden // heads)})
    merged = sizes.hidden * _merge(fields) ** 2
    return (
        tower_linear("patch_embed.proj", (sizes.hidden, _pixels(fields, 14)))
        + layers(sizes, form)
        + tower_norm("merger.ln_q", sizes.hidden)
        + _mlp("merger.mlp", merged, fields.integer("out_hidden_size", default=3584))
    )


def _merger(prefix: str, normed: int, merged: int, out: int, *, mlp: bool) -> Weights:
    if mlp:
        return tower_norm(f"{prefix}ln_q", normed, bias=True) + _mlp(f"{prefix}mlp", merged, out)
    return (
        tower_norm(f"{prefix}norm", normed, bias=True)
        + tower_linear(f"{prefix}linear_fc1", (merged, merged), "column", bias=True)
        + tower_linear(f"{prefix}linear_fc2", (out, merged), "row", bias=True)
    )


def _mlp(name: str, merged: int, out: int) -> Weights:
    return tower_linear(f"{name}.0", (merged, merged), "column", bias=True) + tower_linear(
        f"{name}.2", (out, merged), "row", bias=True
    )


def _pixels(fields: Fields, patch: int) -> int:
    # Older files write in_chans; both mean the three colours.
    frames = fields.integer("temporal_patch_size", default=2, most=_MAX_MERGE)
    channels = "in_chans" if fields.has("in_chans") else "in_channels"
    return read_pixels(fields, patch=patch, channels=channels, frames=frames)


def _merge(fields: Fields) -> int:
    return fields.integer("spatial_merge_size", default=2, most=_MAX_MERGE)
