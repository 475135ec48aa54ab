"""Llama 3.2 Vision's tower: tiles of an image, 32 local layers and 8 gated global ones.

Shapes: transformers v5.24.0 src/transformers/models/mllama/modeling_mllama.py.
"""

from __future__ import annotations

from typing import NamedTuple

from kvplan.architectures.blocks import Weights
from kvplan.architectures.fields import MAX_LAYERS, Fields
from kvplan.architectures.towers.parts import (
    LayerForm,
    TowerSizes,
    layers,
    read_patches,
    read_pixels,
    read_sizes,
    tower_linear,
    tower_norm,
    tower_table,
    tower_vector,
)

_FORM = LayerForm(
    out="self_attn.o_proj",
    norms=("input_layernorm", "post_attention_layernorm"),
    qkv_bias=False,
    out_bias=False,
)
_MAX_TILES = 64
_RATIOS = 8  # ways to cut an image into up to four tiles
_OUTPUT = 7680


class MllamaTower(NamedTuple):
    """The tower.

    Attributes:
        weights: Its weights.
        output: Elements of what it puts out for one patch.
        tokens: Patches of the largest image, over all tiles.
    """

    weights: Weights
    output: int
    tokens: int


def mllama_vit(fields: Fields) -> MllamaTower:
    """Reads the tower. Defaults: MllamaVisionConfig."""
    local = read_sizes(fields, hidden=1280, width=5120, depth=32)
    depth = fields.integer("num_global_layers", default=8, most=MAX_LAYERS)
    tiles = fields.integer("max_num_tiles", default=4, most=_MAX_TILES)
    positions = read_patches(fields, image=448, patch=14) + 1
    gates = tower_vector("gate_attn", 1) + tower_vector("gate_ffn", 1)
    whole = local.model_copy(update={"depth": depth})
    weights = (
        tower_linear("patch_embedding", (local.hidden, read_pixels(fields, patch=14)))
        + tower_vector("class_embedding", local.hidden)
        + _positions(fields, local, tiles, positions)
        + tower_norm("layernorm_pre", local.hidden, bias=True)
        + layers(local, _FORM)
        + layers(whole, _FORM, extra=gates)
        + tower_norm("layernorm_post", local.hidden, bias=True)
    )
    output = fields.integer("vision_output_dim", default=_OUTPUT)
    return MllamaTower(weights, output, tiles * positions)


def _positions(fields: Fields, sizes: TowerSizes, tiles: int, positions: int) -> Weights:
    stated = fields.raw("supported_aspect_ratios")
    ratios = 1 + (len(stated) if isinstance(stated, list) and stated else _RATIOS)
    hidden = sizes.hidden
    weights = tower_table("gated_positional_embedding.embedding", (positions, hidden))
    weights += tower_linear(
        "gated_positional_embedding.tile_embedding", (ratios, tiles * positions * hidden)
    )
    for name in ("pre_tile_positional_embedding", "post_tile_positional_embedding"):
        weights += tower_linear(f"{name}.embedding", (ratios, tiles * hidden))
        weights += tower_vector(f"{name}.gate", 1)
    return weights + tower_vector("gated_positional_embedding.gate", 1)
