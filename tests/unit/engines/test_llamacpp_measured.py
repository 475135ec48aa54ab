"""Cache sizes that public start-up logs of llama.cpp and its fork print, from geometry alone."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from kvplan.api import read_spec
from kvplan.engines.llamacpp.caches import LayerStore, Types, layer_stores
from kvplan.engines.llamacpp.context import Context, context_of
from kvplan.errors import KvplanError
from kvplan.models.caches import FullCache, LatentCache
from kvplan.models.spec import Layer, ModelSpec

MODELS = {
    "DeepSeek R1": "deepseek-ai/DeepSeek-R1",
    "unsloth_DeepSeek R1": "deepseek-ai/DeepSeek-R1",
    "DeepSeek V3": "deepseek-ai/DeepSeek-V3-0324",
    "Deepseek-V3": "deepseek-ai/DeepSeek-V3-0324",
    "DeepSeek-Coder-V2": "deepseek-ai/DeepSeek-Coder-V2-Lite-Instruct",
    "Qwen3 235B": "Qwen/Qwen3-235B-A22B",
    "Qwen3-235B": "Qwen/Qwen3-235B-A22B",
    "Qwen3-30B": "Qwen/Qwen3-30B-A3B",
    "Qwen3-32B": "Qwen/Qwen3-32B",
    "Qwen3.8-27B": "Qwen/Qwen3.5-27B",
    "Gemma 3 27b": "google/gemma-3-27b-it",
    "Gemma-3-27B": "google/gemma-3-27b-it",
    "Gemma-4-31B": "google/gemma-4-31B-it",
    "gpt-oss-20b": "openai/gpt-oss-20b",
}
# What a log prints of a buffer, in MiB: two decimals, of two halves.
ROUNDING = 0.011


def rows_of(shared: Path) -> Iterator[dict[str, Any]]:
    with (shared / "measurements" / "llamacpp.jsonl").open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def spec_of(row: dict[str, Any]) -> ModelSpec | None:
    """The model, if its geometry is bundled."""
    name = row["model"] or row["model_inferred"] or ""
    reference = next((model for start, model in MODELS.items() if name.startswith(start)), None)
    if reference is None:
        return None
    try:
        spec = read_spec(reference, offline=True)
    except KvplanError:
        return None
    return _unpacked(spec) if row["v_size"] else spec


def _unpacked(spec: ModelSpec) -> ModelSpec:
    """Latent attention in files that hold it unpacked: keys and values for each query head."""
    if not any(isinstance(cache, LatentCache) for cache in spec.caches):
        return spec
    whole = FullCache(kv_heads=spec.attention_heads, head_dim=192, head_dim_v=128)
    return spec.model_copy(update={"layers": (Layer(caches=(whole,)),) * len(spec.layers)})


def stored(row: dict[str, Any], spec: ModelSpec) -> tuple[tuple[LayerStore, ...], Context]:
    flags = row["flags"]
    key = flags.get("cache_type_k") or "f16"
    latent = any(isinstance(cache, LatentCache) for cache in spec.caches)
    value = key if latent else flags.get("cache_type_v") or key
    context = context_of(
        flags.get("n_ctx") or row["kv_tokens"],
        flags.get("n_parallel") or 1,
        unified=flags.get("kv_unified") is not False,
        n_batch=flags.get("n_batch") or 2048,
        n_ubatch=flags.get("n_ubatch") or 512,
    )
    types = Types(key, value, flash_attn=True)
    return layer_stores(spec, types, rollback=flags.get("n_rs_seq") or 0), context


def mib(stores: list[LayerStore], context: Context, *, swa_full: bool = False) -> float:
    return sum(store.bytes(context, swa_full=swa_full) for store in stores) / 2**20


def test_caches_whose_geometry_is_known_are_equal_within_print_rounding(
    shared: Path, record_property: Callable[[str, object], None]
) -> None:
    counted: Counter[str] = Counter()
    for row in rows_of(shared):
        if not (row["formula"] or {}).get("independent"):
            continue
        spec = spec_of(row)
        if spec is None:
            counted["model not bundled"] += 1
            continue
        stores, context = stored(row, spec)
        fork = row["engine"].startswith("ik")  # keeps no windows
        kept = [s for s in stores if s.kind != "recurrent" and (fork or s.window is None)]
        assert abs(mib(kept, context, swa_full=fork) - row["kv_size"]) < ROUNDING, row["id"]
        counted["equal"] += 1
        other = row["other"] or {}
        if (other.get("swa") or {}).get("mib"):
            windows = mib([s for s in stores if s.window], context)
            assert abs(windows - other["swa"]["mib"]) < ROUNDING, row["id"]
        if "recurrent_mib" in other:
            states = mib([s for s in stores if s.kind == "recurrent"], context)
            assert abs(states - other["recurrent_mib"]) < ROUNDING, row["id"]
    record_property("table: llama.cpp measured caches", f"{dict(counted)}")
    assert counted["equal"] == 73


def test_memory_grows_by_the_caches_alone(shared: Path) -> None:
    """Starts that differ in their context: what the driver says was used, in whole MiB."""
    by_series: dict[tuple[str, str], list[tuple[dict[str, Any], int]]] = {}
    for row in rows_of(shared):
        used = (row["other"] or {}).get("vram_used_mib")
        alike = row["flags"].get("n_cpu_moe") in (20, 24)
        if used and alike and row["flags"].get("n_parallel") == 8:
            by_series.setdefault((row["model"][:12], row["gpu"]), []).append((row, used))
    compared = 0
    for series in by_series.values():
        for (before, used), (after, used_then) in pairwise(series):
            sizes = []
            for row in (before, after):
                spec = spec_of({**row, "v_size": 1})
                assert spec is not None
                flags = {**row["flags"], "kv_unified": False}
                stores, context = stored({**row, "flags": flags}, spec)
                sizes.append(mib(list(stores), context))
            assert abs((used_then - used) - (sizes[1] - sizes[0])) <= 2
            compared += 1
    assert compared == 7
