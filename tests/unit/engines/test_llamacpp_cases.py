"""A selection of the reference cases of llama.cpp, with the models' metadata beside them."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from llamacpp_cases import device_difference, difference, spec_from

CASES: dict[str, Any] = json.loads(
    (Path(__file__).parents[2] / "data" / "llamacpp_cases.json").read_text(encoding="utf-8")
)


@pytest.mark.parametrize("model", CASES["models"])
def test_contexts_are_equal(model: str) -> None:
    spec = spec_from(CASES["models"][model])
    rows = [row for row in CASES["contexts"] if row[0] == model]
    assert rows
    wrong = [found for _, params, expected in rows if (found := difference(spec, params, expected))]
    assert not wrong


@pytest.mark.parametrize("model", sorted({row["model"] for row in CASES["devices"]}))
def test_devices_are_equal(model: str) -> None:
    spec = spec_from(CASES["models"][model])
    rows = [row for row in CASES["devices"] if row["model"] == model]
    wrong = [found for row in rows if (found := device_difference(spec, row))]
    assert not wrong


def test_the_selection_has_every_outcome() -> None:
    outcomes = Counter("refused" in expected for *_, expected in CASES["contexts"])
    assert outcomes[True] >= 20
    assert outcomes[False] >= 90
