"""Words about images on the command line."""

from __future__ import annotations

import pytest

from kvplan.cli.images import parse_image_size, parse_images
from kvplan.errors import UsageError


@pytest.mark.parametrize(("text", "count"), [(None, 0), ("0", 0), ("4", 4), (" 12 ", 12)])
def test_numbers_of_images(text: str | None, count: int) -> None:
    assert parse_images(text) == count


@pytest.mark.parametrize(
    ("text", "size"),
    [(None, None), ("1024x768", (1024, 768)), ("1 X 2", (1, 2)), ("10×20", (10, 20))],
)
def test_sizes(text: str | None, size: tuple[int, int] | None) -> None:
    assert parse_image_size(text) == size


@pytest.mark.parametrize("text", ["", "-1", "four", "1.5", "1k", "1" * 10])
def test_no_number(text: str) -> None:
    with pytest.raises(UsageError, match="is not a number of images") as error:
        parse_images(text)
    assert error.value.location == "--images"


@pytest.mark.parametrize("text", ["", "1024", "1024x", "x768", "1024*768", "1x2x3", "-1x2", "ax2"])
def test_no_size(text: str) -> None:
    with pytest.raises(UsageError, match="is not the size of an image") as error:
        parse_image_size(text)
    assert error.value.location == "--image-size"
