"""Images that are cut into tiles of one size, mostly with the whole image beside them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import override

from kvplan.models.formats import ceil_div
from kvplan.models.images.base import ImageRule, NaturalInt, PositiveInt
from kvplan.models.images.resized import ResizedImage

Grid = tuple[int, int]  # columns, rows

# Features along a side beyond those of the tiles allowed, before a grid is thinned out:
# vLLM v0.33.0 vllm/model_executor/models/llava_onevision.py _get_num_unpadded_features.
_THINNED = 1.1


class TiledImage(ImageRule):
    """The grid of tiles that suits the image best, out of all up to a number of tiles.

    Attributes:
        tile: Pixels of a tile's side.
        tile_tokens: Tokens of a tile.
        min_tiles, max_tiles: The whole image apart.
        choice: ``ratio``: the grid whose sides are most alike to the image's; ``canvas``: the
            one that needs the image enlarged least, or if all are too small, shrunk least.
        overview: An image of several tiles is there once more as a whole.
        tile_marks: Markers with each tile of several.
        image_marks: Markers with each image.
    """

    kind: Literal["tiled"] = "tiled"
    tile: PositiveInt
    tile_tokens: PositiveInt
    min_tiles: PositiveInt = 1
    max_tiles: Annotated[int, Field(gt=0, le=1024)]
    choice: Literal["ratio", "canvas"]
    overview: bool
    tile_marks: NaturalInt = 0
    image_marks: NaturalInt = 0

    @override
    def tokens(self, width: int, height: int) -> int:
        columns, rows = (
            nearest_ratio(width, height, tile=self.tile, least=self.min_tiles, most=self.max_tiles)
            if self.choice == "ratio"
            else self._canvas(width, height)
        )
        return self._of(columns * rows)

    @override
    def most(self) -> int:
        return self._of(self.max_tiles)

    def _of(self, tiles: int) -> int:
        if tiles == 1:
            return self.tile_tokens + self.image_marks
        whole = self.tile_tokens if self.overview else 0
        return tiles * (self.tile_tokens + self.tile_marks) + whole + self.image_marks

    def _canvas(self, width: int, height: int) -> Grid:
        def scale(grid: Grid) -> float:
            return min(grid[0] * self.tile / width, grid[1] * self.tile / height)

        # Of canvases alike the smallest is first, and min and max take the first.
        grids = sorted(grids_of(self.min_tiles, self.max_tiles), key=math.prod)
        large = [grid for grid in grids if scale(grid) >= 1]
        return min(large, key=scale) if large else max(grids, key=scale)


class ThumbnailTiles(ImageRule):
    """Large images as tiles with a resized whole beside them, small ones resized (LFM2-VL).

    Attributes:
        whole: How an image is resized as a whole.
        large: Times the area that a whole may have, beyond which an image is cut up.
        tile, tile_tokens, min_tiles, max_tiles: As in `TiledImage`.
        tile_marks: Markers with each tile, and with the whole beside tiles.
        image_marks: Markers with each image.
    """

    kind: Literal["thumbnail_tiles"] = "thumbnail_tiles"
    whole: ResizedImage
    large: Annotated[float, Field(gt=0)]
    tile: PositiveInt
    tile_tokens: PositiveInt
    min_tiles: PositiveInt
    max_tiles: Annotated[int, Field(gt=0, le=1024)]
    tile_marks: NaturalInt
    image_marks: NaturalInt

    @override
    def tokens(self, width: int, height: int) -> int:
        whole = self.whole.tokens(width, height) + self.image_marks
        sides = (self.whole.unit * round(side / self.whole.unit) for side in (width, height))
        limit = self.whole.max_pixels
        if limit is None or math.prod(sides) <= limit * self.large:
            return whole
        columns, rows = nearest_ratio(
            width, height, tile=self.tile, least=self.min_tiles, most=self.max_tiles
        )
        return columns * rows * (self.tile_tokens + self.tile_marks) + whole + self.tile_marks

    @override
    def most(self) -> int | None:
        whole = self.whole.most()
        if whole is None:
            return None
        tiles = self.max_tiles * (self.tile_tokens + self.tile_marks)
        return tiles + whole + self.tile_marks + self.image_marks


class AnyresImage(ImageRule):
    """The one of some listed sizes that keeps most of the image, and the whole beside it.

    Each row of features ends with a token of its own.

    Attributes:
        sizes: Width and height of each, in pixels.
        tile: Pixels of a tile's side.
        grid: Features along a tile's side.
        whole: Tokens of the whole image, and markers.
        trimmed: Features of padding are taken out.
        most_tiles: More features than so many tiles have are thinned out; None: never.
    """

    kind: Literal["anyres"] = "anyres"
    sizes: Annotated[tuple[tuple[PositiveInt, PositiveInt], ...], Field(min_length=1)]
    tile: PositiveInt
    grid: PositiveInt
    whole: PositiveInt
    trimmed: bool
    most_tiles: PositiveInt | None = None

    @override
    def tokens(self, width: int, height: int) -> int:
        best_width, best_height = self._best(width, height)
        columns = self.grid * (best_width // self.tile)
        rows = self.grid * (best_height // self.tile)
        if self.trimmed:
            columns, rows = _trimmed(columns, rows, width, height)
        if self.most_tiles is not None:
            ratio = math.sqrt(columns * rows / (self.most_tiles * self.grid**2))
            if ratio > _THINNED:
                columns, rows = int(columns // ratio), int(rows // ratio)
        return rows * (columns + 1) + self.whole

    @override
    def most(self) -> int:
        rows = max(height for _, height in self.sizes) * self.grid // self.tile
        features = max(math.prod(size) for size in self.sizes) * self.grid**2 // self.tile**2
        if self.most_tiles is not None:
            features = min(features, int(_THINNED**2 * self.most_tiles * self.grid**2))
        return features + rows + self.whole

    def _best(self, width: int, height: int) -> Grid:
        best, best_kept, best_wasted = self.sizes[0], 0, math.inf
        for size in self.sizes:
            scale = min(size[0] / width, size[1] / height)
            kept = min(int(width * scale) * int(height * scale), width * height)
            wasted = math.prod(size) - kept
            if kept > best_kept or (kept == best_kept and wasted < best_wasted):
                best, best_kept, best_wasted = size, kept, wasted
        return best


class SplitImage(ImageRule):
    """Scaled to a longest side and cut into tiles as they come (Idefics 3, SmolVLM).

    Attributes:
        longest: Pixels of the longer side.
        limit: Pixels of a side that no image exceeds.
        tile: Pixels of a tile's side.
        tile_tokens: Tokens of a tile, and of the whole image.
        tile_marks, image_marks: Markers with each tile, and with each image.
    """

    kind: Literal["split"] = "split"
    longest: PositiveInt
    limit: PositiveInt
    tile: PositiveInt
    tile_tokens: PositiveInt
    tile_marks: NaturalInt
    image_marks: NaturalInt

    @override
    def tokens(self, width: int, height: int) -> int:
        columns, rows = self._grid(width, height)
        tiles = columns * rows if columns * rows > 1 else 0
        return tiles * (self.tile_tokens + self.tile_marks) + self.tile_tokens + self.image_marks

    def _grid(self, width: int, height: int) -> Grid:
        wide = width >= height
        ratio = width / height if wide else height / width
        short = int(self.longest / ratio)
        long, short = self.longest, max(1, short + short % 2)
        if long > self.limit:
            long, short = self.limit, max(1, int(self.limit / (long / short)))
        sides = ceil_div(long, self.tile), ceil_div(short, self.tile)
        return sides if wide else (sides[1], sides[0])

    @override
    def most(self) -> int:
        return self.tokens(1, 1)


class SlicedImage(ImageRule):
    """Cut into as many slices as its area has times a square (MiniCPM-V), and the whole beside.

    Attributes:
        side: Pixels of the square's side.
        max_slices: Slices at most.
        slice_tokens: Tokens of a slice, and of the whole image.
        marks: Markers with each.
    """

    kind: Literal["sliced"] = "sliced"
    side: PositiveInt
    max_slices: Annotated[int, Field(gt=0, le=1024)]
    slice_tokens: PositiveInt
    marks: NaturalInt

    @override
    def tokens(self, width: int, height: int) -> int:
        columns, rows = self._grid(width, height)
        slices = columns * rows if columns * rows > 1 else 0
        return (slices + 1) * (self.slice_tokens + self.marks)

    def _grid(self, width: int, height: int) -> Grid:
        wanted = min(ceil_div(width * height, self.side**2), self.max_slices)
        if wanted <= 1:
            return 1, 1
        shape = math.log(width / height)
        counts = (wanted - 1, wanted, wanted + 1)
        grids = [
            (count // rows, rows)
            for count in counts
            if 1 < count <= self.max_slices
            for rows in range(1, count + 1)
            if count % rows == 0
        ]
        return min(grids, key=lambda grid: abs(shape - math.log(grid[0] / grid[1])))

    @override
    def most(self) -> int:
        slices = self.max_slices if self.max_slices > 1 else 0
        return (slices + 1) * (self.slice_tokens + self.marks)


def grids_of(least: int, most: int) -> Iterator[Grid]:
    """Every grid of ``least`` to ``most`` tiles."""
    for columns in range(1, most + 1):
        for rows in range(max(1, ceil_div(least, columns)), most // columns + 1):
            yield columns, rows


def nearest_ratio(width: int, height: int, *, tile: int, least: int, most: int) -> Grid:
    """The grid most alike to the image in shape; the larger of two while the image fills half."""
    best, best_apart = (1, 1), math.inf
    for grid in sorted(grids_of(least, most), key=math.prod):
        apart = abs(width / height - grid[0] / grid[1])
        larger = width * height > 0.5 * tile * tile * math.prod(grid)
        if apart < best_apart or (apart == best_apart and larger):
            best, best_apart = grid, apart
    return best


def _trimmed(columns: int, rows: int, width: int, height: int) -> Grid:
    """A grid of features without those that hold padding only."""
    if width / height > columns / rows:
        kept = int(round(height * (columns / width), 7))
        return columns, rows - 2 * ((rows - kept) // 2)
    kept = int(round(width * (rows / height), 7))
    return columns - 2 * ((columns - kept) // 2), rows
