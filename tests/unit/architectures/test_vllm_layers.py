"""Caches layer by layer against what vLLM 0.33 builds for the same configuration."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from kvplan.architectures import read_model
from kvplan.architectures.table import FAMILIES
from kvplan.models.caches import FullCache, LatentCache, LayerCache, WindowCache
from kvplan.models.facts import ModelFacts
from kvplan.models.spec import ModelSpec

Cell = tuple[str, int, int, int | None]

KINDS = {"SlidingWindowSpec": "window", "FullAttentionSpec": "full", "MLAAttentionSpec": "latent"}
# Cohere 2 attends to the window and the token itself: vLLM plans one more.
WINDOW_EXTRA = {"cohere2": 1}
# What changes the layers that vLLM builds, not the model: drafts, pipeline stages, no windows.
ELSEWHERE = ("speculative", "sliding_window", "kv_cache_dtype_skip", "hybrid")


def ours(cache: LayerCache, tp: int, extra: int) -> Cell:
    match cache:
        case WindowCache():
            return ("window", cache.heads_per_rank(tp), cache.head_dim, cache.window + extra)
        case FullCache():
            return ("full", cache.heads_per_rank(tp), cache.head_dim, None)
        case LatentCache():
            return ("latent", 1, cache.latent_dim + cache.rope_dim, None)
    raise AssertionError(cache)


def theirs(spec: dict[str, Any]) -> Cell:
    window = spec.get("sliding_window")
    return (KINDS[spec["cls"]], spec["num_kv_heads"], spec["head_size"], window)


def comparable(case: dict[str, Any]) -> bool:
    return (
        case["status"] == "ok"
        and (case.get("arch") or {}).get("model_type") in FAMILIES
        and case["input"].get("pp", 1) == 1
        and not any(word in case["id"] for word in ELSEWHERE)
    )


def test_layers_equal_those_of_vllm(
    shared: Path, oracle: Callable[[str], Iterator[dict[str, Any]]]
) -> None:
    read: dict[str, ModelSpec] = {}
    cases = 0
    for case in filter(comparable, oracle("vllm_cases.jsonl.gz")):
        path = shared / "oracle" / case["input"]["model"] / "config.json"
        if case["model"] not in read:
            config = json.loads(path.read_text())
            read[case["model"]] = read_model(
                ModelFacts(id=case["model"], source=str(path), config=config)
            )
        spec, tp = read[case["model"]], case["input"].get("tp", 1)
        worker = case["worker_specs"][0]
        extra = WINDOW_EXTRA.get(spec.model_type, 0)
        assert [ours(layer.caches[0], tp, extra) for layer in spec.layers] == [
            theirs(worker["specs"][index]) for index in worker["layer_spec_index"]
        ], case["id"]
        if "mml=None" in case["id"]:
            assert spec.max_context == case["resolved"]["max_model_len"], case["id"]
        cases += 1
    assert len(read) >= 15
    assert cases >= 500
