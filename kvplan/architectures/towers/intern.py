"""InternViT, in its own form and in that of transformers.

Shapes: OpenGVLab's modeling_intern_vit.py as vLLM v0.33.0 reads it
(vllm/model_executor/models/intern_vit.py), and transformers v5.24.0
src/transformers/models/internvl/modeling_internvl.py.
"""

from __future__ import annotations

from kvplan.architectures.blocks import Weights
from kvplan.architectures.fields import Fields
from kvplan.architectures.towers.parts import (
    MAX_CHANNELS,
    MAX_IMAGE,
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

_OWN = LayerForm(qkv=("attn.qkv",), out="attn.proj", norms=("norm1", "norm2"))
_HF = LayerForm(
    qkv=("attention.q_proj", "attention.k_proj", "attention.v_proj"),
    out="attention.projection_layer",
    norms=("layernorm_before", "layernorm_after"),
)


def intern_vit(fields: Fields) -> tuple[Weights, int]:
    """InternViT and its width: every size has to be stated, as its files do."""
    sizes = read_sizes(fields, hidden=3200, width=12800, depth=48)
    form = _OWN.model_copy(
        update={
            "qkv_bias": fields.flag("qkv_bias", default=False),
            "norm_bias": fields.optional_text("norm_type") == "layer_norm",
        }
    )
    extra = tower_vector("ls1", sizes.hidden) + tower_vector("ls2", sizes.hidden)
    if fields.flag("qk_normalization", default=True):
        extra += _qk_norms(sizes, "attn.q_norm", "attn.k_norm")
    positions = read_patches(fields, image=224, patch=14) + 1
    pixels = read_pixels(fields, patch=14)
    return (
        tower_vector("embeddings.class_embedding", sizes.hidden)
        + tower_linear("embeddings.patch_embedding", (sizes.hidden, pixels), bias=True)
        + tower_table("embeddings.position_embedding", (positions, sizes.hidden))
        + layers(sizes, form, extra=extra),
        sizes.hidden,
    )


def internvl_vit(fields: Fields) -> tuple[Weights, int]:
    """The same tower in transformers' form. Defaults: InternVLVisionConfig."""
    sizes = read_sizes(fields, hidden=1024, width=4096, depth=24)
    form = _HF.model_copy(
        update={
            "qkv_bias": fields.flag("attention_bias", default=False),
            "norm_bias": fields.optional_text("norm_type") in (None, "layer_norm"),
        }
    )
    extra = tower_vector("lambda_1", sizes.hidden) + tower_vector("lambda_2", sizes.hidden)
    if fields.flag("use_qk_norm", default=False):
        extra += _qk_norms(sizes, "attention.q_norm", "attention.k_norm")
    pixels, positions = _pairs(fields)
    weights = tower_vector("embeddings.cls_token", sizes.hidden)
    if fields.flag("use_mask_token", default=False):
        weights += tower_vector("embeddings.mask_token", sizes.hidden)
    weights += tower_linear(
        "embeddings.patch_embeddings.projection", (sizes.hidden, pixels), bias=True
    )
    if fields.flag("use_absolute_position_embeddings", default=True):
        weights += tower_table("embeddings.position_embeddings", (positions, sizes.hidden))
    weights += layers(sizes, form, extra=extra)
    if not fields.flag("use_mean_pooling", default=True):
        weights += tower_norm("layernorm", sizes.hidden, bias=True)
    return weights, sizes.hidden


def _qk_norms(sizes: TowerSizes, *names: str) -> Weights:
    weights: Weights = ()
    for name in names:
        weights += tower_norm(name, sizes.hidden)
    return weights


def _pairs(fields: Fields) -> tuple[int, int]:
    """Numbers of one patch, and positions: this class states height and width."""
    image = fields.integers("image_size", least=1, most=MAX_IMAGE) or (448, 448)
    patch = fields.integers("patch_size", least=1, most=MAX_IMAGE) or (14, 14)
    if len(image) != 2 or len(patch) != 2:
        raise fields.conflict("`image_size` and `patch_size` have to state height and width.")
    channels = fields.integer("num_channels", default=3, most=MAX_CHANNELS)
    positions = (image[0] // patch[0]) * (image[1] // patch[1]) + 1
    return channels * patch[0] * patch[1], positions
