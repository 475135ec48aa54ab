"""Wrappers whose towers other code describes: Phi-3 Vision, Phi-4 Multimodal, DeepSeek-VL2."""

from __future__ import annotations

from kvplan.architectures.anatomy import Anatomy
from kvplan.architectures.blocks import Weights
from kvplan.architectures.fields import MAX_LAYERS, Fields
from kvplan.architectures.towers.parts import (
    MAX_IMAGE,
    LayerForm,
    TowerSizes,
    layers,
    tower_linear,
    tower_norm,
    tower_vector,
)
from kvplan.architectures.wrappers.parts import Beside

_TIMM = LayerForm(qkv=("attn.qkv",), out="attn.proj", norms=("norm1", "norm2"))
_VL2 = "vLLM v0.33.0 vllm/transformers_utils/configs/deepseek_vl2.py"
_MOST = 64
SO400M = "vit_so400m_patch14_siglip_384.webli"
_COLOURS = 3


def phi3_v(fields: Fields, text: Anatomy) -> Beside:
    """Phi-3 and 3.5 Vision: CLIP ViT-L/14 at 336 pixels, four patches merged.

    The file names the tower; its sizes stand in vLLM v0.33.0
    vllm/model_executor/models/phi3v.py CLIP_VIT_LARGE_PATCH14_336_CONFIG.
    """
    processor = fields.section("img_processor") or fields
    if processor.optional_text("name") != "clip_vision_model":
        return Beside((), "vision tower and projector")
    width = processor.integer("image_dim_out", default=1024)
    merged, hidden = 4 * width, text.hidden_size
    return Beside(
        _clip_large()
        + tower_vector("glb_GN", merged)
        + tower_vector("sub_GN", merged)
        + tower_linear("img_projection.0", (hidden, merged), bias=True)
        + tower_linear("img_projection.2", (hidden, hidden), bias=True)
    )


def phi4mm(_: Fields, __: Anatomy) -> Beside:
    """Phi-4 Multimodal: its towers and adapters are not described by the file."""
    return Beside((), "vision tower, audio encoder and their adapters")


def deepseek_vl2(fields: Fields, text: Anatomy) -> Beside:
    """DeepSeek-VL2: SigLIP as timm builds it, four patches merged by two matrices."""
    config = fields.section("vision_config", source=_VL2)
    projector = fields.section("projector_config", source=_VL2)
    if config is None or projector is None:
        raise fields.error("vision_config", None, "an object")
    tower, width = _timm_vit(config)
    kind = projector.optional_text("projector_type")
    if kind not in (None, "downsample_mlp_gelu"):
        return Beside(tower, "projector")
    hidden = projector.integer("n_embed", default=2048)
    inner = hidden * projector.integer("mlp_ratio", default=1, most=_MOST)
    depth = projector.integer("depth", default=2, least=2, most=_MOST)
    area = projector.integer("downsample_ratio", default=2, most=_MOST) ** 2
    weights = tower_linear("projector.layers.0", (inner, width * area), bias=True)
    for step in range(1, depth - 1):
        weights += tower_linear(f"projector.layers.{2 * step}", (inner, inner), bias=True)
    weights += tower_linear(f"projector.layers.{2 * depth - 2}", (hidden, inner), bias=True)
    for name in ("image_newline", "view_seperator"):
        weights += tower_vector(name, text.hidden_size)
    return Beside(tower + weights)


def so400m() -> tuple[Weights, int]:
    """SigLIP So400M at 384 pixels without its pooling head, and its width.

    Sizes: timm 1.0.24 timm/models/vision_transformer.py ``vit_so400m_patch14_siglip_384``.
    """
    sizes = TowerSizes(hidden=1152, width=int(1152 * 3.7362), depth=27)
    return _vit(sizes, side=384, patch=14), sizes.hidden


def _timm_vit(config: Fields) -> tuple[Weights, int]:
    """A plain vision transformer without its pooling head (vLLM drops it)."""
    hidden = config.integer("width", default=1024)
    ratio = config.number("mlp_ratio") or 4.0
    side = config.integer("image_size", default=384, most=MAX_IMAGE)
    patch = config.integer("patch_size", default=16, most=side)
    sizes = TowerSizes(
        hidden=hidden,
        width=int(hidden * min(ratio, float(_MOST))) or 1,
        depth=config.integer("layers", default=24, most=MAX_LAYERS),
    )
    return _vit(sizes, side=side, patch=patch), hidden


def _vit(sizes: TowerSizes, *, side: int, patch: int) -> Weights:
    hidden = sizes.hidden
    return (
        tower_linear("patch_embed.proj", (hidden, _COLOURS * patch * patch), bias=True)
        + tower_linear("pos_embed", ((side // patch) ** 2, hidden))
        + layers(sizes, _TIMM)
        + tower_norm("norm", hidden, bias=True)
    )


def _clip_large() -> Weights:
    sizes = TowerSizes(hidden=1024, width=4096, depth=24)
    return (
        tower_vector("embeddings.class_embedding", 1024)
        + tower_linear("embeddings.patch_embedding", (1024, _COLOURS * 14 * 14))
        + tower_linear("embeddings.position_embedding", (577, 1024))
        + tower_norm("pre_layrnorm", 1024, bias=True)
        + layers(sizes)
        + tower_norm("post_layernorm", 1024, bias=True)
    )
