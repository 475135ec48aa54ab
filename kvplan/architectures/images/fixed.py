"""Families whose images all take the same number of tokens: LLaVA 1.5, Gemma 3, PaliGemma."""

from __future__ import annotations

from kvplan.architectures.fields import Fields
from kvplan.architectures.images.resized import pixtral
from kvplan.architectures.images.settings import ImageSettings
from kvplan.models.images.base import FixedImage
from kvplan.models.images.rules import AnyImageRule

_LLAVA = "vLLM v0.33.0 vllm/model_executor/models/llava.py get_num_image_tokens"
_GEMMA3 = "transformers v5.24.0 models/gemma3/processing_gemma3.py"
_GEMMA3N = "transformers v5.24.0 models/gemma3n/configuration_gemma3n.py, processing_gemma3n.py"
_PALIGEMMA = "transformers v5.24.0 models/paligemma/processing_paligemma.py"
_IDEFICS2 = "transformers v5.24.0 models/idefics2/processing_idefics2.py"
_MLLAMA = "transformers v5.24.0 models/mllama/processing_mllama.py"
_SIDE = 65_536
# Class defaults of image and patch by the tower's type.
_TOWERS = {
    "clip_vision_model": (224, 32),
    "siglip_vision_model": (224, 16),
}
_CLIP = "clip_vision_model"
_SPLIT = 5  # four quarters and the whole image
_MARKS = 2


def llava(settings: ImageSettings) -> AnyImageRule | None:
    """LLaVA 1.5 and Pixtral; LLaVA's original form does not describe its tower."""
    if settings.vision.optional_text("model_type") == "pixtral":
        return pixtral(settings)
    grid = grid_of(settings.fields)
    tokens = grid and selected(settings.fields, grid)
    return FixedImage(tokens_each=tokens, source=_LLAVA) if tokens else None


def gemma3(settings: ImageSettings) -> AnyImageRule:
    """Gemma 3 without pan and scan, which is off by default. Default: Gemma3Config."""
    tokens = settings.stated(settings.fields, "mm_tokens_per_image", 256)
    return FixedImage(tokens_each=tokens + _MARKS, source=_GEMMA3)


def gemma3n(settings: ImageSettings) -> AnyImageRule:
    """Gemma 3n. Default: Gemma3nConfig."""
    tokens = settings.stated(settings.fields, "vision_soft_tokens_per_image", 256)
    return FixedImage(tokens_each=tokens + _MARKS, source=_GEMMA3N)


def paligemma(settings: ImageSettings) -> AnyImageRule | None:
    """PaliGemma: a token for every patch of the square that images are resized to."""
    grid = _grid(settings.vision, 224, 16)
    return FixedImage(tokens_each=grid * grid, source=_PALIGEMMA) if grid else None


def idefics2(settings: ImageSettings) -> AnyImageRule:
    """Idefics 2: its latents, five times over if images are split."""
    resampler = settings.fields.section("perceiver_config") or settings.fields
    latents = settings.stated(resampler, "resampler_n_latents", 64)
    split = settings.switch("do_image_splitting", default=False)
    count = _SPLIT if split else 1
    # One marker before each part, and one after the last.
    return FixedImage(
        tokens_each=count * (latents + 1) + 1, source=_IDEFICS2, unstated=settings.unknown
    )


def mllama(_: ImageSettings) -> AnyImageRule:
    """Llama 3.2 Vision: one token; what the image holds is read by cross attention."""
    return FixedImage(tokens_each=1, source=_MLLAMA)


def grid_of(fields: Fields) -> int | None:
    """Patches along a side of the tower's square, or None where the file does not describe it."""
    vision = fields.section("vision_config")
    if vision is None:
        return None
    sides = _TOWERS.get(vision.optional_text("model_type") or _CLIP)
    return None if sides is None else _grid(vision, *sides)


def selected(fields: Fields, grid: int) -> int:
    """Features that LLaVA's projector reads: all, or all but the class token.

    Default: LlavaConfig. SigLIP has no class token, yet ``default`` drops its first feature.
    """
    vision = fields.section("vision_config") or fields
    extra = 1 if (vision.optional_text("model_type") or _CLIP) == _CLIP else 0
    dropped = 0 if fields.optional_text("vision_feature_select_strategy") == "full" else 1
    return grid * grid + extra - dropped


def _grid(vision: Fields, image: int, patch: int) -> int:
    settings = ImageSettings(vision, vision, [])
    side = settings.stated(vision, "image_size", image, most=_SIDE)
    return side // settings.stated(vision, "patch_size", patch, most=_SIDE)
