"""Images that are resized as a whole: a token for every square of so many pixels."""

from __future__ import annotations

import math
from typing import Literal

from typing_extensions import override

from kvplan.errors import UsageError
from kvplan.models.formats import ceil_div
from kvplan.models.images.base import ImageRule, NaturalInt, PositiveInt

# Longer sides are this many times the shorter at most: Qwen2VLImageProcessor's smart_resize.
_MOST_RATIO = 200


class ResizedImage(ImageRule):
    """Sides are rounded to whole units and scaled until the area is within bounds.

    Attributes:
        unit: Pixels of a token's side.
        frames: Copies of the image that the tower takes at once; they count towards the bounds.
        min_pixels, max_pixels: The bounds; ``max_pixels`` is None where nothing at hand states it.
        small: A side below half a unit is rounded to nothing (``rounded``), or to one unit
            (``unit``); ``scaled``: an image with a side below one unit is enlarged first.
    """

    kind: Literal["resized"] = "resized"
    unit: PositiveInt
    frames: PositiveInt = 1
    min_pixels: NaturalInt
    max_pixels: PositiveInt | None
    small: Literal["rounded", "unit", "scaled"] = "rounded"

    @override
    def tokens(self, width: int, height: int) -> int:
        if self.small == "scaled" and min(width, height) < self.unit:
            scale = max(self.unit / width, self.unit / height)
            width, height = int(width * scale), int(height * scale)
        if max(width, height) > _MOST_RATIO * min(width, height):
            raise UsageError(
                f"An image of {width:,} × {height:,} pixels is more than {_MOST_RATIO} times as"
                " long as it is wide, which the model's processor refuses.",
                hint="Give another --image-size.",
            )
        columns, rows = self._bounded(width, height)
        return columns * rows

    def _bounded(self, width: int, height: int) -> tuple[int, int]:
        least = 1 if self.small == "unit" else 0
        columns = max(least, round(width / self.unit))
        rows = max(least, round(height / self.unit))
        pixels = self.frames * columns * rows * self.unit**2
        drawn = self.frames * width * height
        if self.max_pixels is not None and pixels > self.max_pixels:
            # Divided twice, as the processor does: the product may round to another whole number.
            ratio = math.sqrt(drawn / self.max_pixels)
            columns = math.floor(width / ratio / self.unit)
            return max(1, columns), max(1, math.floor(height / ratio / self.unit))
        if pixels < self.min_pixels:
            factor = math.sqrt(self.min_pixels / drawn)
            return math.ceil(width * factor / self.unit), math.ceil(height * factor / self.unit)
        return columns, rows

    @override
    def most(self) -> int | None:
        if self.max_pixels is None:
            return None
        return max(1, self.max_pixels // (self.frames * self.unit**2))


class FittedImage(ImageRule):
    """Longer sides are shrunk to a limit, then each row ends with a token of its own (Pixtral).

    Attributes:
        unit: Pixels of a token's side.
        longest: Pixels of a side at most.
    """

    kind: Literal["fitted"] = "fitted"
    unit: PositiveInt
    longest: PositiveInt

    @override
    def tokens(self, width: int, height: int) -> int:
        ratio = max(width / self.longest, height / self.longest)
        if ratio > 1:
            width = max(1, math.floor(width / ratio))
            height = max(1, math.floor(height / ratio))
        return ceil_div(height, self.unit) * (ceil_div(width, self.unit) + 1)

    @override
    def most(self) -> int:
        side = ceil_div(self.longest, self.unit)
        return side * (side + 1)


class PaddedImage(ImageRule):
    """Never enlarged, shrunk to so many patches, and padded to whole units (MoonViT).

    Attributes:
        patch: Pixels of a patch's side.
        merge: Patches along the side of a token.
        max_patches: Of an image, before padding.
        max_side: Patches along one side at most, or None.
    """

    kind: Literal["padded"] = "padded"
    patch: PositiveInt
    merge: PositiveInt
    max_patches: PositiveInt
    max_side: PositiveInt | None = None

    @override
    def tokens(self, width: int, height: int) -> int:
        patches = max(1, width // self.patch) * max(1, height // self.patch)
        scale = min(1.0, math.sqrt(self.max_patches / patches))
        limit = None if self.max_side is None else self.max_side * self.patch
        if limit is not None:
            scale = min(scale, limit / width, limit / height)
        unit = self.patch * self.merge
        return ceil_div(self._side(width, scale), unit) * ceil_div(self._side(height, scale), unit)

    def _side(self, pixels: int, scale: float) -> int:
        scaled = max(1, int(pixels * scale))
        return scaled if self.max_side is None else min(scaled, self.max_side * self.patch)

    @override
    def most(self) -> None:
        # Padding after shrinking exceeds the patches allowed by what depends on the shape.
        return None


class BudgetImage(ImageRule):
    """Scaled up or down until as many tokens as allowed fit (Gemma 4).

    Attributes:
        max_tokens: Allowed.
        marks: Markers with each image.
    """

    kind: Literal["budget"] = "budget"
    max_tokens: PositiveInt
    marks: NaturalInt

    @override
    def tokens(self, width: int, height: int) -> int:
        scale = math.sqrt(self.max_tokens / (width * height))
        columns, rows = max(1, math.floor(width * scale)), max(1, math.floor(height * scale))
        return min(columns * rows, self.max_tokens) + self.marks

    @override
    def most(self) -> int:
        return self.max_tokens + self.marks
