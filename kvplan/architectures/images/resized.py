"""Families whose images keep their shape: Qwen, GLM-V, MiniMax, Kimi, Pixtral, Gemma 4."""

from __future__ import annotations

from typing import Literal

from kvplan.architectures.fields import MAX_DIMENSION, Fields
from kvplan.architectures.images.settings import ImageSettings
from kvplan.models.images.resized import BudgetImage, FittedImage, PaddedImage, ResizedImage
from kvplan.models.images.rules import AnyImageRule

_QWEN = "vLLM v0.33.0 vllm/model_executor/models/qwen2_vl.py _get_vision_info"
_GLM = "vLLM v0.33.0 vllm/model_executor/models/glm4_1v.py _get_vision_info"
_MINIMAX = "vLLM v0.33.0 vllm/transformers_utils/processors/minimax_m3.py smart_resize"
_KIMI_VL = "vLLM v0.33.0 vllm/model_executor/models/kimi_vl.py get_num_image_tokens"
_KIMI = "transformers v5.24.0 models/kimi_k25/image_processing_kimi_k25.py navit_resize"
_PIXTRAL = "vLLM v0.33.0 vllm/model_executor/models/pixtral.py PixtralHFEncoderInfo"
_GEMMA4 = "vLLM v0.33.0 vllm/model_executor/models/gemma4_mm.py _compute_num_soft_tokens"
_SIDE = 65_536
_MERGE = 64


def qwen(settings: ImageSettings) -> AnyImageRule:
    """Qwen2-VL to Qwen 3.6, EXAONE 4.5. Defaults: Qwen2VLImageProcessor."""
    return _qwen(settings, settings.vision, patch=14)


def qwen_16(settings: ImageSettings) -> AnyImageRule:
    """Qwen3-VL and later: patches of 16 pixels."""
    return _qwen(settings, settings.vision, patch=16)


def qwen_omni(settings: ImageSettings) -> AnyImageRule:
    """Qwen2.5-Omni."""
    return _qwen(settings, _thinker(settings), patch=14)


def qwen_omni_16(settings: ImageSettings) -> AnyImageRule:
    """Qwen3-Omni."""
    return _qwen(settings, _thinker(settings), patch=16)


def glm4v(settings: ImageSettings) -> AnyImageRule:
    """GLM-4.1V to 4.6V: the bounds count both frames. Defaults: Glm4vImageProcessor."""
    frames = settings.stated(settings.vision, "temporal_patch_size", 2, most=_MERGE)
    return _resized(
        settings, settings.vision, _GLM, patch=14, least=112 * 112, frames=frames, small="scaled"
    )


def minimax_m3(settings: ImageSettings) -> AnyImageRule | None:
    """MiniMax M3, unless its processor's file asks for the other way to resize."""
    if settings.processor.has("max_long_side_pixel"):
        return None
    merging = settings.vision.section("img_token_compression_config") or settings.vision
    merge = settings.stated(merging, "spatial_merge_size", 2, most=_MERGE)
    unit = merge * settings.stated(settings.vision, "patch_size", 14, most=_SIDE)
    return ResizedImage(
        unit=unit,
        min_pixels=4 * 28 * 28,
        max_pixels=settings.chosen("max_pixels", 451_584),
        small="unit",
        source=_MINIMAX,
        unstated=settings.unknown,
    )


def kimi_vl(settings: ImageSettings) -> AnyImageRule | None:
    """Kimi-VL; how many patches an image may have stands in the processor's file alone."""
    if not settings.processor.has("in_token_limit"):
        return None
    return PaddedImage(
        patch=settings.stated(settings.vision, "patch_size", 14, most=_SIDE),
        merge=settings.stated(settings.vision, "merge_kernel_size", 2, most=_MERGE),
        max_patches=settings.chosen("in_token_limit", 4096),
        source=_KIMI_VL,
    )


def kimi_k25(settings: ImageSettings) -> AnyImageRule:
    """Kimi K2.5 to K2.7. Defaults: Kimi_K25ImageProcessor."""
    media = settings.processor.section("media_proc_cfg")
    if media is not None:
        patches = media.integer("in_patch_limit", default=16_384)
        side = media.integer("patch_limit_on_one_side", default=512)
    else:
        patches = settings.chosen("max_patches", 16_384)
        side = settings.edge("size", "max_height", 512)
    return PaddedImage(
        patch=settings.stated(settings.vision, "patch_size", 14, most=_SIDE),
        merge=settings.stated(settings.vision, "merge_kernel_size", 2, most=_MERGE),
        max_patches=patches,
        max_side=side,
        source=_KIMI,
        unstated=settings.unknown,
    )


def kimi_k3(settings: ImageSettings) -> AnyImageRule | None:
    """Kimi K3; how many patches an image may have stands in the processor's file alone."""
    return kimi_k25(settings) if settings.processor.has("media_proc_cfg") else None


def pixtral(settings: ImageSettings) -> AnyImageRule:
    """Pixtral, and Mistral 3 which merges patches. Defaults: PixtralVisionConfig."""
    merge = settings.stated(settings.fields, "spatial_merge_size", 1, most=_MERGE)
    return _pixtral(settings, merge)


def mistral3(settings: ImageSettings) -> AnyImageRule:
    """Mistral Small 3.1 and later. Defaults: Mistral3Config."""
    return _pixtral(
        settings, settings.stated(settings.fields, "spatial_merge_size", 2, most=_MERGE)
    )


def gemma4(settings: ImageSettings) -> AnyImageRule | None:
    """Gemma 4. Default: Gemma4ImageProcessor."""
    if not settings.fields.has("vision_config"):
        return None
    length = settings.vision.optional_integer("default_output_length")
    return BudgetImage(
        max_tokens=length or settings.chosen("max_soft_tokens", 280),
        marks=2,
        source=_GEMMA4,
        unstated=settings.unknown,
    )


def _qwen(settings: ImageSettings, vision: Fields, *, patch: int) -> AnyImageRule:
    return _resized(settings, vision, _QWEN, patch=patch, least=56 * 56)


def _resized(
    settings: ImageSettings,
    vision: Fields,
    source: str,
    *,
    patch: int,
    least: int,
    frames: int = 1,
    small: Literal["rounded", "scaled"] = "rounded",
) -> AnyImageRule:
    size = settings.processor.section("size")
    own = settings.processor
    shortest = _bound(own, "min_pixels") or _bound(size, "shortest_edge")
    longest = _bound(own, "max_pixels") or _bound(size, "longest_edge")
    unit = settings.stated(vision, "patch_size", patch, most=_SIDE)
    unit *= settings.stated(vision, "spatial_merge_size", 2, most=_MERGE)
    unstated = () if longest else ("no largest image",)
    return ResizedImage(
        unit=unit,
        frames=frames,
        min_pixels=shortest or least,
        max_pixels=longest,
        small=small,
        source=source,
        unstated=unstated,
    )


def _bound(size: Fields | None, name: str) -> int | None:
    return None if size is None else size.optional_integer(name, most=MAX_DIMENSION**2)


def _thinker(settings: ImageSettings) -> Fields:
    thinker = settings.fields.section("thinker_config") or settings.fields
    return thinker.section("vision_config") or thinker


def _pixtral(settings: ImageSettings, merge: int) -> AnyImageRule:
    return FittedImage(
        unit=merge * settings.stated(settings.vision, "patch_size", 16, most=_SIDE),
        longest=settings.stated(settings.vision, "image_size", 1024, most=_SIDE),
        source=_PIXTRAL,
    )
