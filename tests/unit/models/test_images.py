"""Tokens of images: each rule against what the processor's own code gives for the same sizes."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kvplan.errors import UsageError
from kvplan.models.images.base import FixedImage, ImageRule
from kvplan.models.images.padded import PaddedTiles, TrimmedTiles
from kvplan.models.images.resized import BudgetImage, FittedImage, PaddedImage, ResizedImage
from kvplan.models.images.tiled import (
    AnyresImage,
    SlicedImage,
    SplitImage,
    ThumbnailTiles,
    TiledImage,
)

SOURCE = "a test"
# Width and height: square, screen, small, camera, a strip.
SIZES = ((1024, 1024), (1920, 1080), (300, 200), (4000, 3000), (90, 2000))
NEXT = ((672, 336), (336, 672), (672, 672), (336, 1008), (1008, 336))
ONEVISION = tuple((384 * columns, 384 * rows) for rows in range(1, 7) for columns in range(1, 7))
DEEPSEEK = (
    *((384, 384), (384, 768), (768, 384), (384, 1152), (1152, 384), (384, 1536)),
    *((1536, 384), (768, 768), (768, 1152), (1152, 768), (1152, 1152)),
)


def resized(unit: int, least: int, most: int, **more: object) -> ResizedImage:
    parts = {"unit": unit, "min_pixels": least, "max_pixels": most, "source": SOURCE, **more}
    return ResizedImage.model_validate(parts)


def tiled(tile: int, tokens: int, most: int, **more: object) -> TiledImage:
    parts = {"tile": tile, "tile_tokens": tokens, "max_tiles": most, "source": SOURCE, **more}
    return TiledImage.model_validate(parts)


def split(longest: int, tile: int) -> SplitImage:
    return SplitImage(
        longest=longest,
        limit=4096,
        tile=tile,
        tile_tokens=64,
        tile_marks=2,
        image_marks=3,
        source=SOURCE,
    )


# Results of the processors' functions for SIZES: transformers v5.24.0 and vLLM v0.33.0, the
# function of each rule's source.
CASES: dict[str, tuple[ImageRule, tuple[int, ...]]] = {
    "fixed": (FixedImage(tokens_each=258, source=SOURCE), (258,) * 5),
    "qwen2_5_vl": (resized(28, 3136, 12_845_056), (1369, 2691, 77, 15_301, 213)),
    "qwen2_vl class": (resized(28, 3136, 1_003_520), (1225, 1222, 77, 1230, 213)),
    "qwen3_vl": (resized(32, 65_536, 16_777_216), (1024, 2040, 70, 11_750, 186)),
    "glm4v": (
        resized(28, 12_544, 11_760_000, frames=2, small="scaled"),
        (1369, 2691, 77, 7500, 213),
    ),
    "minimax_m3": (resized(28, 3136, 451_584, small="unit"), (576, 576, 77, 540, 213)),
    "kimi_k25": (
        PaddedImage(patch=14, merge=2, max_patches=16_384, max_side=512, source=SOURCE),
        (1369, 2691, 88, 4200, 288),
    ),
    "mistral3": (FittedImage(unit=28, longest=1540, source=SOURCE), (1406, 1736, 96, 2352, 220)),
    "gemma4": (BudgetImage(max_tokens=280, marks=2, source=SOURCE), (258, 266, 262, 268, 236)),
    "internvl": (
        tiled(448, 256, 12, choice="ratio", overview=True, image_marks=2),
        (2562, 2306, 1794, 3330, 3330),
    ),
    "internvl without a whole": (
        tiled(448, 256, 6, choice="ratio", overview=False, image_marks=2),
        (1026, 514, 1538, 1538, 1538),
    ),
    "internvl of two tiles up": (
        tiled(448, 256, 40, min_tiles=2, choice="ratio", overview=True, image_marks=2),
        (2562, 7426, 1794, 3330, 5890),
    ),
    "llama4": (
        tiled(336, 144, 16, choice="canvas", overview=True, tile_marks=1, image_marks=3),
        (2467, 2322, 147, 1887, 1017),
    ),
    "cohere2_vision": (
        tiled(512, 256, 12, choice="canvas", overview=True, tile_marks=1, image_marks=3),
        (1287, 3343, 259, 3343, 1287),
    ),
    "lfm2_vl": (
        ThumbnailTiles(
            whole=resized(32, 64 * 1024, 256 * 1024, small="unit"),
            large=2.0,
            tile=512,
            tile_tokens=256,
            min_tiles=2,
            max_tiles=10,
            tile_marks=1,
            image_marks=2,
            source=SOURCE,
        ),
        (1287, 2311, 72, 1779, 188),
    ),
    "llava_next": (
        AnyresImage(sizes=NEXT, tile=336, grid=24, whole=576, trimmed=True, source=SOURCE),
        (2928, 1948, 1464, 2340, 936),
    ),
    "llava_onevision": (
        AnyresImage(
            sizes=ONEVISION,
            tile=384,
            grid=27,
            whole=729,
            trimmed=True,
            most_tiles=9,
            source=SOURCE,
        ),
        (7371, 7269, 1261, 7309, 2025),
    ),
    "deepseek_vl_v2": (
        AnyresImage(sizes=DEEPSEEK, tile=384, grid=14, whole=211, trimmed=False, source=SOURCE),
        (2017, 1415, 421, 2017, 1051),
    ),
    "idefics3": (split(1456, 364), (1123, 859, 859, 859, 331)),
    "idefics3 beyond the limit": (split(5000, 364), (9571, 5611, 6403, 7195, 859)),
    "minicpmv": (
        SlicedImage(side=448, max_slices=9, slice_tokens=64, marks=2, source=SOURCE),
        (462, 594, 66, 660, 66),
    ),
    "phi3_v": (
        PaddedTiles(tile=336, grid=12, max_tiles=16, source=SOURCE),
        (2509, 2353, 1921, 1921, 2653),
    ),
    "phi3_v of four tiles": (
        PaddedTiles(tile=336, grid=12, max_tiles=4, source=SOURCE),
        (757, 757, 757, 757, 781),
    ),
    "phi4mm": (
        TrimmedTiles(tile=448, patch=14, grid=16, max_tiles=36, source=SOURCE),
        (2625, 3918, 460, 3393, 673),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_as_the_processor_counts(name: str) -> None:
    rule, wanted = CASES[name]
    assert tuple(rule.tokens(*size) for size in SIZES) == wanted


@given(
    name=st.sampled_from(sorted(CASES)),
    width=st.integers(1, 20_000),
    height=st.integers(1, 20_000),
)
def test_at_least_one_token_and_never_more_than_the_most(
    name: str, width: int, height: int
) -> None:
    assume(max(width, height) <= 100 * min(width, height))
    rule, _ = CASES[name]
    tokens, most = rule.tokens(width, height), rule.most()
    assert tokens >= 1
    assert most is None or tokens <= most


def test_one_division_after_the_other() -> None:
    """1,583 / 1.13 / 28 is just below a whole number; by their product it is that number."""
    rule = resized(28, 12_544, 11_760_000, frames=2, small="scaled")
    assert rule.tokens(1583, 4749) == 7500


def test_sides_below_half_a_unit() -> None:
    """Ten pixels: rounded to none, then enlarged to the least; to one unit; enlarged first."""
    parts = {"unit": 28, "least": 3136, "most": 10**7}
    assert resized(**parts).tokens(10, 1000) == 20
    assert resized(**parts, small="unit").tokens(10, 1000) == 36
    assert resized(**parts, small="scaled").tokens(10, 1000) == 100


def test_without_a_largest_image() -> None:
    rule = ResizedImage(unit=28, min_pixels=3136, max_pixels=None, source=SOURCE)
    assert rule.most() is None
    assert rule.tokens(28_000, 28_000) == 1_000_000


def test_images_too_long_to_be_taken() -> None:
    rule = resized(28, 3136, 10**7)
    assert rule.tokens(5600, 28) == 200
    with pytest.raises(UsageError, match=r"5,601 × 28 pixels is more than 200 times"):
        rule.tokens(5601, 28)


def test_of_two_grids_alike_the_larger_one_is_for_images_that_fill_half_of_it() -> None:
    """1:1 is one tile, four, or nine."""
    rule = tiled(100, 1, 9, choice="ratio", overview=False)
    assert [rule.tokens(side, side) for side in (141, 142, 212, 213)] == [1, 4, 4, 9]
