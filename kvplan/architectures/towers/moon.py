"""MoonViT, the tower of the Kimi models: any image size, learned positions on a grid of 64 × 64.

Shapes: vLLM v0.33.0 vllm/model_executor/models/moonvit.py and kimi_k25_vit.py.
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
    tower_linear,
    tower_norm,
)

_FORM = LayerForm(
    qkv=("wqkv",),
    out="wo",
    ups=("mlp.fc0",),
    down="mlp.fc1",
    norms=("norm0", "norm1"),
)
_MAX_GRID = 4096


def moonvit(fields: Fields) -> tuple[Weights, int]:
    """The tower of Kimi-VL and its width. Defaults: MoonViTConfig."""
    return _moonvit(fields, read_sizes(fields, hidden=1152, width=4304, depth=27), "")


def moonvit_3d(fields: Fields) -> tuple[Weights, int]:
    """The tower of Kimi K2.5 and K3 and its width. Defaults: KimiK25VisionConfig."""
    sizes = TowerSizes(
        hidden=fields.integer("vt_hidden_size", "hidden_size", default=1152),
        width=fields.integer("vt_intermediate_size", "intermediate_size", default=4304),
        depth=fields.integer(
            "vt_num_hidden_layers", "num_hidden_layers", default=27, most=MAX_LAYERS
        ),
        queries=fields.optional_integer("qkv_hidden_size") or 0,
    )
    return _moonvit(fields, sizes, "3d")


def merge_area(fields: Fields) -> int:
    """Patches that are merged into one token."""
    kernel = fields.integers("merge_kernel_size", least=1, most=_MAX_GRID) or (2, 2)
    if len(kernel) != 2:
        raise fields.conflict("`merge_kernel_size` has to state height and width.")
    return kernel[0] * kernel[1]


def _moonvit(fields: Fields, sizes: TowerSizes, kind: str) -> tuple[Weights, int]:
    biases = {
        "qkv_bias": not kind or fields.flag("attn_bias", default=True),
        "out_bias": not kind or fields.flag("attn_bias", default=True),
        "mlp_bias": not kind or fields.flag("linear_bias", default=True),
        "norm_bias": fields.optional_text("norm_type") != "rmsnorm",
    }
    form = _FORM.model_copy(update=biases)
    patch_bias = not kind or fields.flag("patch_embed_proj_bias", default=True)
    grid = fields.integer("init_pos_emb_height", default=64, most=_MAX_GRID)
    grid *= fields.integer("init_pos_emb_width", default=64, most=_MAX_GRID)
    pixels = read_pixels(fields, patch=14)
    return (
        tower_linear("patch_embed.proj", (sizes.hidden, pixels), bias=patch_bias)
        + tower_linear("patch_embed.pos_emb", (grid, sizes.hidden))
        + layers(sizes, form)
        + tower_norm("final_layernorm", sizes.hidden, bias=form.norm_bias),
        sizes.hidden,
    )
