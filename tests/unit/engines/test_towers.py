"""Towers that no request reaches are neither profiled nor loaded."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from kvplan import api
from kvplan.engines.vllm.towers import off

MODEL = "google/gemma-3-12b-it"
NO_VISION = {"image": 0, "video": 0}


@pytest.mark.parametrize(
    ("limits", "components"),
    [
        (None, set()),
        ({}, set()),
        ({"image": 0}, set()),
        (NO_VISION, {"vision"}),
        ({"image": 0, "video": 1}, set()),
        ({"audio": 0}, {"audio"}),
        ({"image": 0, "video": 0, "audio": 0}, {"vision", "audio"}),
    ],
)
def test_a_tower_is_off_if_all_that_it_takes_is(
    limits: Mapping[str, int] | None, components: set[str]
) -> None:
    assert off(limits) == components


@pytest.mark.parametrize(
    ("version", "limits", "lines"),
    [
        ("0.33.0", None, {"weights.vision", "multimodal_profile"}),
        ("0.33.0", {"image": 1, "video": 0}, {"weights.vision", "multimodal_profile"}),
        ("0.33.0", NO_VISION, set()),
        ("0.14.0", NO_VISION, {"weights.vision"}),
        ("0.10.0", NO_VISION, {"weights.vision", "multimodal_profile"}),
    ],
)
def test_its_lines(version: str, limits: Mapping[str, int] | None, lines: set[str]) -> None:
    plan = api.size(
        MODEL,
        "H100-SXM-80GB",
        engine=f"vllm=={version}",
        context=8192,
        engine_options={"limit_mm_per_prompt": limits} if limits else {},
        advice=False,
        offline=True,
    )
    names = {line.name for line in plan.ledger}
    assert names & {"weights.vision", "multimodal_profile"} == lines
    unsized = [reason for reason in plan.reasons if reason.code == "option_not_sized"]
    assert bool(unsized) == (limits is not None and limits != NO_VISION)
