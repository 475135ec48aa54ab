"""Families that cut images up: InternVL, Llama 4, LLaVA-NeXT, Idefics 3, MiniCPM-V, Phi."""

from __future__ import annotations

from kvplan.architectures.fields import Fields
from kvplan.architectures.images.fixed import grid_of, selected
from kvplan.architectures.images.settings import ImageSettings
from kvplan.models.images.padded import PaddedTiles, TrimmedTiles
from kvplan.models.images.resized import ResizedImage
from kvplan.models.images.rules import AnyImageRule
from kvplan.models.images.tiled import (
    AnyresImage,
    SlicedImage,
    SplitImage,
    ThumbnailTiles,
    TiledImage,
)

_INTERNVL = "vLLM v0.33.0 vllm/transformers_utils/processors/internvl.py"
_INTERNVL_HF = "transformers v5.24.0 models/internvl/processing_internvl.py"
_LLAMA4 = "transformers v5.24.0 models/llama4/processing_llama4.py, image_processing_llama4.py"
_AYA = "transformers v5.24.0 models/aya_vision/processing_aya_vision.py"
_LFM2 = "transformers v5.24.0 models/lfm2_vl/image_processing_lfm2_vl.py, processing_lfm2_vl.py"
_COHERE2 = "transformers v5.24.0 models/cohere2_vision/processing_cohere2_vision.py"
_LLAVA_NEXT = "vLLM v0.33.0 vllm/model_executor/models/llava_next.py get_num_image_tokens"
_ONEVISION = "vLLM v0.33.0 vllm/model_executor/models/llava_onevision.py"
_DEEPSEEK = "vLLM v0.33.0 vllm/model_executor/models/deepseek_vl2.py get_num_image_tokens"
_IDEFICS3 = "transformers v5.24.0 models/idefics3/image_processing_idefics3.py"
_MINICPM = "vLLM v0.33.0 vllm/model_executor/models/minicpmv.py get_num_image_tokens"
_PHI3 = "vLLM v0.33.0 vllm/model_executor/models/phi3v.py, the model's image_processing_phi3_v.py"
_PHI4 = "vLLM v0.33.0 vllm/model_executor/models/phi4mm.py _compute_num_image_tokens"
_SIDE = 65_536
_TILES = 1024
# LlavaNextConfig and LlavaOnevisionConfig, height before width.
_NEXT_SIZES = ((336, 672), (672, 336), (672, 672), (1008, 336), (336, 1008))
_ONEVISION_SIZES = tuple(
    (384 * rows, 384 * columns) for rows in range(1, 7) for columns in range(1, 7)
)


def internvl_chat(settings: ImageSettings) -> AnyImageRule | None:
    """InternVL in its own form; the configuration states all. A marker either side."""
    fields = settings.fields
    side = settings.stated(settings.vision, "image_size", 448, most=_SIDE)
    tokens = _shuffled(
        fields, side // settings.stated(settings.vision, "patch_size", 14, most=side)
    )
    dynamic = fields.raw("dynamic_image_size") is True
    if not tokens or not fields.has("max_dynamic_patch"):
        return None
    return TiledImage(
        tile=side,
        tile_tokens=tokens,
        min_tiles=settings.stated(fields, "min_dynamic_patch", 1, most=_TILES) if dynamic else 1,
        max_tiles=fields.integer("max_dynamic_patch", most=_TILES) if dynamic else 1,
        choice="ratio",
        overview=fields.raw("use_thumbnail") is True,
        image_marks=2,
        source=_INTERNVL,
    )


def internvl(settings: ImageSettings) -> AnyImageRule:
    """The same models in transformers' form. Defaults: InternVLConfig, GotOcr2ImageProcessor."""
    return TiledImage(
        tile=settings.stated(settings.vision, "image_size", 448, most=_SIDE),
        tile_tokens=settings.stated(settings.fields, "image_seq_length", 256),
        min_tiles=settings.chosen("min_patches", 1, most=_TILES),
        max_tiles=settings.chosen("max_patches", 12, most=_TILES),
        choice="ratio",
        overview=True,
        image_marks=2,
        source=_INTERNVL_HF,
        unstated=settings.unknown,
    )


def llama4(settings: ImageSettings) -> AnyImageRule | None:
    """Llama 4. Defaults: Llama4VisionConfig, Llama4ImageProcessor."""
    if not settings.fields.has("vision_config"):
        return None
    vision = settings.vision
    side = settings.stated(vision, "image_size", 448, most=_SIDE)
    grid = side // settings.stated(vision, "patch_size", 14, most=side)
    merged = round(1 / (vision.number("pixel_shuffle_ratio") or 0.5) ** 2)
    tokens = grid * grid // merged if merged else 0
    if not tokens:
        return None
    return TiledImage(
        tile=side,
        tile_tokens=tokens,
        max_tiles=settings.chosen("max_patches", 16, most=_TILES),
        choice="canvas",
        overview=True,
        tile_marks=1,
        image_marks=3,
        source=_LLAMA4,
        unstated=settings.unknown,
    )


def cohere2_vision(settings: ImageSettings) -> AnyImageRule:
    """Command A Vision. Defaults: Cohere2VisionImageProcessor, whose patch counts tokens."""
    tokens = settings.chosen("patch_size", 16, most=_SIDE) ** 2
    return TiledImage(
        tile=settings.edge("size", "height", 512),
        tile_tokens=tokens,
        max_tiles=settings.chosen("max_patches", 12, most=_TILES),
        choice="canvas",
        overview=True,
        tile_marks=1,
        image_marks=3,
        source=_COHERE2,
        unstated=settings.unknown,
    )


def aya_vision(settings: ImageSettings) -> AnyImageRule | None:
    """Aya Vision. Defaults: AyaVisionConfig, GotOcr2ImageProcessor."""
    side = settings.stated(settings.vision, "image_size", 384, most=_SIDE)
    merge = settings.stated(settings.fields, "downsample_factor", 2, most=64)
    grid = side // (merge * settings.stated(settings.vision, "patch_size", 14, most=side))
    if not grid:
        return None
    return TiledImage(
        tile=side,
        tile_tokens=grid * grid,
        min_tiles=settings.chosen("min_patches", 1, most=_TILES),
        max_tiles=settings.chosen("max_patches", 12, most=_TILES),
        choice="ratio",
        overview=True,
        tile_marks=1,
        image_marks=3,
        source=_AYA,
        unstated=settings.unknown,
    )


def lfm2_vl(settings: ImageSettings) -> AnyImageRule | None:
    """LFM2-VL: its files state all of it in the configuration too. Defaults: the processor's."""
    fields = settings.fields
    if fields.raw("do_image_splitting") is False or fields.raw("use_thumbnail") is False:
        return None
    patch = settings.stated(fields, "encoder_patch_size", 16, most=_SIDE)
    unit = patch * settings.stated(fields, "downsample_factor", 2, most=64)
    tile = settings.stated(fields, "tile_size", 512, most=_SIDE)
    return ThumbnailTiles(
        whole=ResizedImage(
            unit=unit,
            min_pixels=settings.stated(fields, "min_image_tokens", 64, most=_SIDE) * unit**2,
            max_pixels=settings.stated(fields, "max_image_tokens", 256, most=_SIDE) * unit**2,
            small="unit",
            source=_LFM2,
        ),
        large=fields.number("max_pixels_tolerance") or 2.0,
        tile=tile,
        tile_tokens=(-(-tile // unit)) ** 2,
        min_tiles=settings.stated(fields, "min_tiles", 2, most=_TILES),
        max_tiles=settings.stated(fields, "max_tiles", 10, most=_TILES),
        tile_marks=1,
        image_marks=2,
        source=_LFM2,
    )


def llava_next(settings: ImageSettings) -> AnyImageRule | None:
    """LLaVA-NeXT. Defaults: LlavaNextConfig."""
    return _anyres(settings, _NEXT_SIZES, most_tiles=None, source=_LLAVA_NEXT)


def llava_onevision(settings: ImageSettings) -> AnyImageRule | None:
    """LLaVA-OneVision. Defaults: LlavaOnevisionConfig."""
    return _anyres(settings, _ONEVISION_SIZES, most_tiles=9, source=_ONEVISION)


def deepseek_vl2(settings: ImageSettings) -> AnyImageRule | None:
    """DeepSeek-VL2: all features stay, padding too."""
    sizes = _sizes(settings.fields, "candidate_resolutions")
    if not sizes:
        return None
    tile = sizes[0][0]
    projector = settings.fields.section("projector_config") or settings.fields
    merge = settings.stated(projector, "downsample_ratio", 2, most=64)
    patch = settings.stated(settings.vision, "patch_size", 16, most=tile)
    grid = -(-(tile // patch) // merge)
    return AnyresImage(
        sizes=sizes,
        tile=tile,
        grid=grid,
        whole=grid * (grid + 1) + 1,
        trimmed=False,
        source=_DEEPSEEK,
    )


def idefics3(settings: ImageSettings) -> AnyImageRule | None:
    """Idefics 3, SmolVLM. Defaults: Idefics3ImageProcessor, Idefics3Config."""
    side = settings.stated(settings.vision, "image_size", 224, most=_SIDE)
    grid = side // settings.stated(settings.vision, "patch_size", 32, most=side)
    tokens = grid * grid // settings.stated(settings.fields, "scale_factor", 2, most=64) ** 2
    if not tokens or not settings.switch("do_image_splitting", default=True):
        return None
    return SplitImage(
        longest=settings.edge("size", "longest_edge", 4 * 364),
        limit=4096,
        tile=settings.edge("max_image_size", "longest_edge", 364),
        tile_tokens=tokens,
        tile_marks=2,
        image_marks=3,
        source=_IDEFICS3,
        unstated=settings.unknown,
    )


def minicpmv(settings: ImageSettings) -> AnyImageRule:
    """MiniCPM-V 2.0 to 4.5: a resampler gives each part the same number of tokens."""
    slices = settings.stated(settings.fields, "max_slice_num", 9, most=_TILES)
    return SlicedImage(
        side=settings.chosen("scale_resolution", 448, most=_SIDE),
        max_slices=settings.chosen("max_slice_nums", slices, most=_TILES),
        slice_tokens=settings.stated(settings.fields, "query_num", 64),
        marks=2,
        source=_MINICPM,
        unstated=settings.unknown,
    )


def phi3_v(settings: ImageSettings) -> AnyImageRule | None:
    """Phi-3 and 3.5 Vision: a tower at 336 pixels; only the processor's file counts its tiles."""
    if not settings.processor.has("num_crops"):
        return None
    tiles = settings.chosen("num_crops", 1, most=_TILES)
    return PaddedTiles(tile=336, grid=12, max_tiles=tiles, source=_PHI3)


def phi4mm(settings: ImageSettings) -> AnyImageRule | None:
    """Phi-4 Multimodal: how many tiles an image may have stands in the processor's file alone."""
    if not settings.processor.has("dynamic_hd"):
        return None
    tiles = settings.chosen("dynamic_hd", 1, most=_TILES)
    return TrimmedTiles(tile=448, patch=14, grid=16, max_tiles=tiles, source=_PHI4)


def _anyres(
    settings: ImageSettings,
    sizes: tuple[tuple[int, int], ...],
    *,
    most_tiles: int | None,
    source: str,
) -> AnyImageRule | None:
    grid = grid_of(settings.fields)
    whole = grid and _selected(settings, grid, source)
    if not grid or not whole:
        return None
    stated = _sizes(settings.fields, "image_grid_pinpoints") or sizes
    tile = settings.stated(settings.vision, "image_size", 336, most=_SIDE)
    if any(min(size) < tile for size in stated):
        return None  # not the sizes of this tower: the engine's own code divides by zero
    return AnyresImage(
        sizes=tuple((width, height) for height, width in stated),
        tile=tile,
        grid=grid,
        whole=whole,
        trimmed=True,
        most_tiles=most_tiles,
        source=source,
    )


def _selected(settings: ImageSettings, grid: int, source: str) -> int:
    # LlavaOnevisionConfig reads every feature where it says nothing.
    if source == _ONEVISION and not settings.fields.has("vision_feature_select_strategy"):
        return grid * grid
    return selected(settings.fields, grid)


def _sizes(fields: Fields, name: str) -> tuple[tuple[int, int], ...] | None:
    listed = fields.raw(name)
    if not isinstance(listed, list):
        return None
    pairs = [tuple(pair) for pair in listed if isinstance(pair, list | tuple) and len(pair) == 2]
    if len(pairs) != len(listed) or not all(_side(x) and _side(y) for x, y in pairs):
        raise fields.error(name, listed, "a list of pairs of whole numbers")
    return tuple((int(x), int(y)) for x, y in pairs)


def _side(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= _SIDE


def _shuffled(fields: Fields, grid: int) -> int:
    ratio = min(fields.number("downsample_ratio") or 0.5, 1.0)
    return int(grid * grid * ratio**2)
