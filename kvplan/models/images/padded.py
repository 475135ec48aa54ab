"""Images that are padded to whole tiles (Phi-3 Vision, Phi-4 Multimodal).

Each row of features ends with a token of its own, and one more parts tiles and whole image.
"""

from __future__ import annotations

import math
from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import override

from kvplan.models.formats import ceil_div
from kvplan.models.images.base import ImageRule, PositiveInt
from kvplan.models.images.tiled import Grid, nearest_ratio


class _PaddedImage(ImageRule):
    tile: PositiveInt
    grid: PositiveInt
    max_tiles: Annotated[int, Field(gt=0, le=1024)]

    def _of(self, columns: int, rows: int) -> int:
        """Tokens of features in so many columns and rows, and of the whole image."""
        return rows * (columns + 1) + self.grid * (self.grid + 1) + 1

    @override
    def most(self) -> int:
        return self._of(self.grid, self.max_tiles * self.grid)


class PaddedTiles(_PaddedImage):
    """As many tiles along the longer side as a budget allows; padding stays (Phi-3 Vision).

    Attributes:
        tile: Pixels of a tile's side.
        grid: Features along a tile's side.
        max_tiles: The whole image apart.
    """

    kind: Literal["padded_tiles"] = "padded_tiles"

    @override
    def tokens(self, width: int, height: int) -> int:
        ratio = max(width, height) / min(width, height)
        long = max(
            side
            for side in range(1, self.max_tiles + 1)
            if side * math.ceil(side / ratio) <= self.max_tiles
        )
        short = ceil_div(int(long * self.tile / ratio), self.tile)
        columns, rows = (long, short) if width >= height else (short, long)
        return self._of(columns * self.grid, rows * self.grid)


class TrimmedTiles(_PaddedImage):
    """As many tiles as cover the image, or if those are too many the grid most alike to it.

    Features of padding only are taken out (Phi-4 Multimodal).

    Attributes:
        tile, grid, max_tiles: As in `PaddedTiles`.
        patch: Pixels of a patch's side.
    """

    kind: Literal["trimmed_tiles"] = "trimmed_tiles"
    patch: PositiveInt

    @override
    def tokens(self, width: int, height: int) -> int:
        columns, rows = self._tiles(width, height)
        wide, high = columns * self.tile, rows * self.tile
        scale = min(wide / width, high / height)
        merge = self.tile // self.patch // self.grid
        return self._of(
            self._features(wide, int(width * scale), merge, whole=wide / width < high / height),
            self._features(high, int(height * scale), merge, whole=wide / width >= high / height),
        )

    def _tiles(self, width: int, height: int) -> Grid:
        columns, rows = ceil_div(width, self.tile), ceil_div(height, self.tile)
        if columns * rows <= self.max_tiles:
            return columns, rows
        return nearest_ratio(width, height, tile=self.tile, least=1, most=self.max_tiles)

    def _features(self, side: int, drawn: int, merge: int, *, whole: bool) -> int:
        padding = 0 if whole else side - drawn
        return ceil_div(side // self.patch - padding // self.patch, merge)
