"""KV cache bytes per token against numbers derived by hand (see README.md)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from kvplan.architectures import read_model
from kvplan.models.caches import ChunkedCache, LayerCache, RecurrentCache, WindowCache
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


def reach(cache: LayerCache) -> int | None:
    """How far back a token of this layer is read: a chunk counts as a window; None: all."""
    match cache:
        case WindowCache():
            return cache.window
        case ChunkedCache():
            return cache.chunk
    return None


def token_bytes(found: list[LayerCache], kv: str, tp: int) -> int:
    return sum(cache.token_bytes(FORMATS[kv], tp=tp) for cache in found)


def test_there_are_enough_models() -> None:
    assert len({case["model"] for case in CASES}) >= 25


@pytest.mark.parametrize("kv", FORMATS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["model"])
def test_bytes_equal_the_derivation(case: dict[str, Any], kv: str) -> None:
    found = caches(case)
    windows = case.get("windows", {"window": None, "auto": [0] * 4, "fp8": [0] * 4})
    windowed = [cache for cache in found if reach(cache) is not None]
    full = [cache for cache in found if reach(cache) is None]
    assert {reach(cache) for cache in windowed} <= {windows["window"]}
    for index, tp in enumerate(TP):
        if case["grows"][kv][index] is not None:
            assert token_bytes(full, kv, tp) == case["grows"][kv][index]
            assert token_bytes(windowed, kv, tp) == windows[kv][index]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["model"])
def test_a_refused_tp_is_one_that_heads_forbid(case: dict[str, Any]) -> None:
    """A null in the table is not an escape: heads or KV heads really don't divide."""
    spec = read_model(ModelFacts(id=case["model"], source=case["source"], config=case["config"]))
    kv_heads = {getattr(cache, "kv_heads", 1) for cache in caches(case)}
    for index, tp in enumerate(TP):
        divides = spec.attention_heads % tp == 0 and all(
            count % tp == 0 or tp % count == 0 for count in kv_heads
        )
        assert (case["grows"]["auto"][index] is not None) is divides


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["model"])
def test_states_equal_the_derivation(case: dict[str, Any]) -> None:
    states = [cache for cache in caches(case) if isinstance(cache, RecurrentCache)]
    assert bool(states) is ("states" in case)
    for tp, expected in zip(TP, case.get("states", (0, 0, 0, 0)), strict=True):
        assert sum(cache.fixed_bytes("bfloat16", tp=tp) for cache in states) == expected
