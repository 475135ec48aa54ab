"""Flags for images in a request, and their words → arguments of `kvplan.size`."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from kvplan.errors import UsageError

_SIZE = re.compile(r"\s*(\d{1,9})\s*[xX×]\s*(\d{1,9})\s*", re.ASCII)
_COUNT = re.compile(r"\s*\d{1,9}\s*", re.ASCII)

Images = Annotated[
    str | None,
    typer.Option(
        "--images",
        metavar="N",
        help="Images a request; their tokens come on top of --context.",
        show_default=False,
    ),
]
ImageSize = Annotated[
    str | None,
    typer.Option(
        "--image-size",
        metavar="WxH",
        help="Width and height of each image in pixels: 1024x768.",
        show_default=False,
    ),
]
ImageTokens = Annotated[
    str | None,
    typer.Option(
        "--image-tokens",
        metavar="TOKENS",
        help="Tokens of each image, where they are known, instead of --image-size.",
        show_default=False,
    ),
]


def parse_images(text: str | None) -> int:
    """A number of images; 0 where none was given."""
    if text is None:
        return 0
    if not _COUNT.fullmatch(text):
        raise UsageError(
            f"{text[:40]!r} is not a number of images.",
            hint="Write --images 4.",
            location="--images",
        )
    return int(text)


def parse_image_size(text: str | None) -> tuple[int, int] | None:
    """Width and height in pixels, if they were given.

    >>> parse_image_size("1024x768")
    (1024, 768)
    """
    if text is None:
        return None
    sides = _SIZE.fullmatch(text)
    if sides is None:
        raise UsageError(
            f"{text[:40]!r} is not the size of an image.",
            hint="Write width and height in pixels: --image-size 1024x768.",
            location="--image-size",
        )
    return int(sides[1]), int(sides[2])
