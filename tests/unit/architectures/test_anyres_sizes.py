"""Sizes of images that belong to another tower than the one that is stated."""

from __future__ import annotations

from typing import Any

import pytest

from kvplan.architectures.fields import Fields
from kvplan.architectures.images.table import read_image_rule
from kvplan.cli.main import run

SIGLIP = {"model_type": "siglip_vision_model", "image_size": 384, "patch_size": 14}
FULL = {"vision_config": SIGLIP, "vision_feature_select_strategy": "full"}


def tokens(config: dict[str, Any], width: int, height: int) -> int | None:
    fields = Fields(config, where="config.json", source="a class")
    rule = read_image_rule("llava_next", fields, None, "config.json")
    return None if rule is None else rule.tokens(width, height)


@pytest.mark.parametrize("size", [(7, 3), (1, 1), (65_536, 1)])
def test_sizes_smaller_than_a_tile_are_no_rule(size: tuple[int, int]) -> None:
    # The class's own sizes are of tiles of 336 pixels.
    assert tokens(FULL, *size) is None
    assert tokens(FULL | {"image_grid_pinpoints": [[384, 336]]}, *size) is None


@pytest.mark.parametrize(
    ("size", "expected"),
    # One tile, whole: 27 rows of 27 features and an end, beside 729; a line is trimmed to a row.
    [((1, 1), 729 + 27 * 28), ((65_536, 1), 729 + 28)],
)
def test_sizes_of_the_tower(size: tuple[int, int], expected: int) -> None:
    assert tokens(FULL | {"image_grid_pinpoints": [[384, 384]]}, *size) == expected


@pytest.mark.parametrize("size", ["7x3", "1x1", "65536x1"])
def test_a_plan_says_that_the_rule_is_not_known(
    size: str, capsys: pytest.CaptureFixture[str]
) -> None:
    image = ["--images", "1", "--image-size", size]
    model = ["ibm-granite/granite-vision-3.3-2b", "--gpu", "H100", "--context", "4096"]
    assert run(["size", *model, *image, "--offline"]) == 2
    assert "How many tokens an image takes is not known" in capsys.readouterr().err
