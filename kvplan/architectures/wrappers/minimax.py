"""MiniMax M3 with its eyes: a tower over patches of two frames, and two projectors in a row.

Shapes: vLLM v0.33.0 vllm/models/minimax_m3/common/vision_tower.py.
"""

from __future__ import annotations

from kvplan.architectures.anatomy import Anatomy
from kvplan.architectures.blocks import Weights
from kvplan.architectures.fields import Fields
from kvplan.architectures.towers.parts import (
    layers,
    read_pixels,
    read_sizes,
    tower_linear,
    tower_norm,
)
from kvplan.architectures.wrappers.parts import Beside, part

_MOST = 64


def minimax_m3_vl(fields: Fields, text: Anatomy) -> Beside:
    """MiniMax M3. Defaults: MiniMaxM3VLConfig."""
    config = part(fields, "vision_config", "minimax_m3_vl")
    # Published files keep these in a part of its own, transformers beside the other sizes.
    merging = config.section("img_token_compression_config") or config
    frames = merging.integer("temporal_patch_size", default=2, most=_MOST)
    area = merging.integer("spatial_merge_size", default=2, most=_MOST) ** 2
    sizes = read_sizes(config, hidden=1280, width=5120, depth=32)
    pixels = read_pixels(config, patch=14, frames=frames)
    inner = fields.optional_integer("projector_hidden_size", default=6144) or text.hidden_size
    return Beside(
        tower_linear("embeddings.proj", (sizes.hidden, pixels))
        + tower_norm("pre_layrnorm", sizes.hidden, bias=True)
        + layers(sizes)
        + _projector("", inner, sizes.hidden, text.hidden_size)
        + _projector("merge_", inner, area * text.hidden_size, text.hidden_size)
    )


def _projector(name: str, inner: int, inputs: int, out: int) -> Weights:
    return tower_linear(f"{name}linear_1", (inner, inputs), bias=True) + tower_linear(
        f"{name}linear_2", (out, inner), bias=True
    )
