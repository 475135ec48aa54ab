"""All rules for the tokens of an image, as one type."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from kvplan.models.images.base import FixedImage
from kvplan.models.images.padded import PaddedTiles, TrimmedTiles
from kvplan.models.images.resized import BudgetImage, FittedImage, PaddedImage, ResizedImage
from kvplan.models.images.tiled import (
    AnyresImage,
    SlicedImage,
    SplitImage,
    ThumbnailTiles,
    TiledImage,
)

AnyImageRule = Annotated[
    FixedImage
    | ResizedImage
    | FittedImage
    | PaddedImage
    | BudgetImage
    | TiledImage
    | AnyresImage
    | SplitImage
    | SlicedImage
    | ThumbnailTiles
    | PaddedTiles
    | TrimmedTiles,
    Field(discriminator="kind"),
]
