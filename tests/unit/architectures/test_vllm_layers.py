"""Caches layer by layer against what vLLM 0.33 builds for the same configuration."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from kvplan.architectures import read_model
from kvplan.architectures.table import FAMILIES
from kvplan.models.caches import (
    ChunkedCache,
    CompressedCache,
    CompressorCache,
    CrossCache,
    FullCache,
    IndexerCache,
    LatentCache,
    LayerCache,
    RecurrentCache,
    WindowCache,
)
from kvplan.models.facts import ModelFacts
from kvplan.models.formats import Dtype
from kvplan.models.spec import ModelSpec


class Cell(NamedTuple):
    """What decides the bytes of one cache on one rank."""

    kind: str
    heads: int
    size: int
    reach: int = 0
    stride: int = 1
    value: int | None = None


KINDS = {
    "ChunkedLocalAttentionSpec": "chunked",
    "CrossAttentionSpec": "cross",
    "FullAttentionSpec": "full",
    "MLAAttentionSpec": "latent",
    "SlidingWindowMLASpec": "window",
    "SlidingWindowSpec": "window",
}
SIZES = {"float32": 4, "float16": 2, "bfloat16": 2}
# Cohere 2 attends to the window and the token itself: vLLM plans one more.
WINDOW_EXTRA = {"cohere2": 1}
# vLLM lists the attention of all layers before the first state.
ATTENTION_FIRST = {"zamba2"}
# What changes the layers that vLLM builds, not the model: drafts, pipeline stages, no windows,
# another type for the states.
ELSEWHERE = (
    "speculative",
    "sliding_window",
    "kv_cache_dtype_skip",
    "hybrid",
    "mamba_cache_dtype",
    "mamba_ssm_cache_dtype",
)


def reach_of(cache: LayerCache, extra: int) -> int:
    match cache:
        case WindowCache():
            return cache.window + extra
        case ChunkedCache():
            return cache.chunk
    return 0


def ours(cache: LayerCache, dtype: Dtype, tp: int, extra: int) -> Cell:
    match cache:
        case WindowCache() | ChunkedCache() | FullCache() | CrossCache():
            heads = cache.heads_per_rank(tp)
            return Cell(
                cache.kind, heads, cache.head_dim, reach_of(cache, extra), value=cache.head_dim_v
            )
        case LatentCache():
            return Cell("latent", 1, cache.latent_dim + cache.rope_dim)
        case CompressedCache():
            kind = "window" if cache.window else "latent"
            size = cache.latent_dim + cache.rope_dim
            return Cell(kind, 1, size, cache.window or 0, cache.stride)
        case CompressorCache():
            return Cell("window", 1, cache.state_dim, cache.window)
        case IndexerCache():
            return Cell("latent", 1, cache.head_dim + 4, stride=cache.stride)
        case RecurrentCache():
            return Cell("states", 1, cache.fixed_bytes(dtype, tp=tp))
    raise AssertionError(cache)


def theirs(spec: dict[str, Any]) -> Cell:
    if spec["cls"] == "MambaSpec":
        states = zip(spec["shapes"], spec["dtypes"], strict=True)
        return Cell("states", 1, sum(math.prod(shape) * SIZES[dtype] for shape, dtype in states))
    reach = spec.get("sliding_window") or spec.get("attention_chunk_size") or 0
    stride = spec.get("tokens_per_state", 1)
    value = None if "MLA" in spec["cls"] else spec.get("head_size_v", spec["head_size"])
    return Cell(KINDS[spec["cls"]], spec["num_kv_heads"], spec["head_size"], reach, stride, value)


def caches(spec: ModelSpec, tp: int) -> list[Cell]:
    extra = WINDOW_EXTRA.get(spec.model_type, 0)
    stored = (cache for layer in spec.layers for cache in layer.caches)
    cells = [ours(cache, spec.dtype, tp, extra) for cache in stored if cache.kind != "shared"]
    first = spec.model_type in ATTENTION_FIRST
    return sorted(cells, key=lambda cell: cell.kind == "states") if first else cells


def comparable(case: dict[str, Any]) -> bool:
    return (
        case["status"] == "ok"
        and (case.get("arch") or {}).get("model_type") in FAMILIES
        and case["input"].get("pp", 1) == 1
        and not case["input"].get("cache_config_overrides")
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
        spec = read[case["model"]]
        worker = case["worker_specs"][0]
        assert caches(spec, case["input"].get("tp", 1)) == [
            theirs(worker["specs"][index]) for index in worker["layer_spec_index"]
        ], case["id"]
        kinds = [cache.kind for layer in spec.layers for cache in layer.caches]
        assert kinds.count("shared") == case["kv_shared_layers"], case["id"]
        if "mml=None" in case["id"]:
            # vLLM takes 2,048 tokens where nothing states a length.
            assert (spec.max_context or 2048) == case["resolved"]["max_model_len"], case["id"]
        cases += 1
    assert len(read) >= 40
    assert cases >= 1_900
