"""CLIP and its kin: CLIP, SigLIP, SigLIP 2, and the SigLIP of Idefics."""

from __future__ import annotations

from kvplan.architectures.blocks import Weights
from kvplan.architectures.fields import Fields
from kvplan.architectures.towers.parts import (
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


def clip(fields: Fields) -> tuple[Weights, int]:
    """A CLIP tower and its width. Defaults: CLIPVisionConfig."""
    sizes = read_sizes(fields, hidden=768, width=3072, depth=12)
    positions = read_patches(fields, image=224, patch=32) + 1
    pixels = read_pixels(fields, patch=32)
    return (
        tower_vector("embeddings.class_embedding", sizes.hidden)
        + tower_linear("embeddings.patch_embedding", (sizes.hidden, pixels))
        + tower_linear("embeddings.position_embedding", (positions, sizes.hidden))
        + tower_norm("pre_layrnorm", sizes.hidden, bias=True)
        + layers(sizes)
        + tower_norm("post_layernorm", sizes.hidden, bias=True),
        sizes.hidden,
    )


def siglip(fields: Fields) -> tuple[Weights, int]:
    """A SigLIP tower and its width. Defaults: SiglipVisionConfig."""
    sizes = read_sizes(fields, hidden=768, width=3072, depth=12)
    patches = read_patches(fields, image=224, patch=16)
    weights = _siglip(fields, sizes, patches, patch=16)
    if fields.flag("vision_use_head", default=True):
        weights += _pooling_head(sizes)
    return weights, sizes.hidden


def siglip2(fields: Fields) -> tuple[Weights, int]:
    """A SigLIP 2 tower (any aspect ratio) and its width. Defaults: Siglip2VisionConfig."""
    sizes = read_sizes(fields, hidden=768, width=3072, depth=12)
    patches = fields.integer("num_patches", default=256)
    weights = _siglip(fields, sizes, patches, patch=16)
    if fields.flag("vision_use_head", default=True):
        weights += _pooling_head(sizes)
    return weights, sizes.hidden


def headless_siglip(fields: Fields, *, hidden: int = 768, patch: int = 32) -> tuple[Weights, int]:
    """A SigLIP tower without pooling, as in Idefics 2 and 3. Defaults: Idefics2VisionConfig."""
    sizes = read_sizes(fields, hidden=hidden, width=3072, depth=12)
    patches = read_patches(fields, image=224, patch=patch)
    return _siglip(fields, sizes, patches, patch=patch), sizes.hidden


def _siglip(fields: Fields, sizes: TowerSizes, patches: int, *, patch: int) -> Weights:
    pixels = read_pixels(fields, patch=patch)
    return (
        tower_linear("embeddings.patch_embedding", (sizes.hidden, pixels), bias=True)
        + tower_linear("embeddings.position_embedding", (patches, sizes.hidden))
        + layers(sizes)
        + tower_norm("post_layernorm", sizes.hidden, bias=True)
    )


def _pooling_head(sizes: TowerSizes) -> Weights:
    hidden, width = sizes.hidden, sizes.width
    return (
        tower_vector("head.probe", hidden)
        + tower_table("head.attention.in_proj_weight", (3 * hidden, hidden))
        + tower_vector("head.attention.in_proj_bias", 3 * hidden)
        + tower_linear("head.attention.out_proj", (hidden, hidden), bias=True)
        + tower_norm("head.layernorm", hidden, bias=True)
        + tower_linear("head.mlp.fc1", (width, hidden), "column", bias=True)
        + tower_linear("head.mlp.fc2", (hidden, width), "row", bias=True)
    )
