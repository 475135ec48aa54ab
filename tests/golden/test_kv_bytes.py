"""KV cache bytes per token against numbers derived by hand (see README.md)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from kvplan.architectures import read_model
from kvplan.models.caches import LayerCache, WindowCache
from kvplan.models.facts import ModelFacts
from kvplan.models.formats import FP8_KV, plain_kv

CASES: list[dict[str, Any]] = [
    case
    for path in sorted(Path(__file__).parent.glob("*/kv_bytes.yaml"))
    for case in yaml.safe_load(path.read_text())
]
TP = (1, 2, 4, 8)
FORMATS = {"auto": plain_kv("bfloat16"), "fp8": FP8_KV}


def caches(case: dict[str, Any]) -> list[LayerCache]:
    spec = read_model(ModelFacts(id=case["model"], source=case["source"], config=case["config"]))
    return [cache for layer in spec.layers for cache in layer.caches]


def token_bytes(found: list[LayerCache], kv: str, tp: int) -> int:
    return sum(cache.token_bytes(FORMATS[kv], tp=tp) for cache in found)


def test_there_are_enough_models() -> None:
    assert len({case["model"] for case in CASES}) >= 25


@pytest.mark.parametrize("kv", FORMATS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["model"])
def test_bytes_equal_the_derivation(case: dict[str, Any], kv: str) -> None:
    found = caches(case)
    windows = case.get("windows", {"window": None, "auto": [0] * 4, "fp8": [0] * 4})
    windowed = [cache for cache in found if isinstance(cache, WindowCache)]
    full = [cache for cache in found if not isinstance(cache, WindowCache)]
    assert {cache.window for cache in windowed} <= {windows["window"]}
    for index, tp in enumerate(TP):
        if case["grows"][kv][index] is not None:
            assert token_bytes(full, kv, tp) == case["grows"][kv][index]
            assert token_bytes(windowed, kv, tp) == windows[kv][index]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["model"])
def test_a_refused_tp_is_one_that_heads_forbid(case: dict[str, Any]) -> None:
    """A null in the table is not an escape: heads or KV heads really don't divide."""
    spec = read_model(ModelFacts(id=case["model"], source=case["source"], config=case["config"]))
    kv_heads = getattr(spec.layers[0].caches[0], "kv_heads", 1)
    for index, tp in enumerate(TP):
        divides = spec.attention_heads % tp == 0 and (kv_heads % tp == 0 or tp % kv_heads == 0)
        assert (case["grows"]["auto"][index] is not None) is divides
