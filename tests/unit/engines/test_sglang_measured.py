"""Bytes of a token against what SGLang printed when it started on real devices."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kvplan
from kvplan.api import read_spec
from kvplan.engines.sglang.pools import pool_bytes

GIB = 2**30
# Names of families in the collection, and a configuration with the same geometry.
CONFIGS = {
    "qwen3-235b": "Qwen--Qwen3-235B-A22B-FP8",
    "qwen3-0.6b": "Qwen--Qwen3-0.6B",
    "llama3-8b": "meta-llama--Llama-3.1-8B-Instruct",
    "qwen2.5-0.5b": "Qwen--Qwen2.5-0.5B",
    "deepseek-v3": "deepseek-ai--DeepSeek-V3",
    "qwen3-30b-a3b": "Qwen--Qwen3-30B-A3B",
    "qwen3-8b": "Qwen--Qwen3-8B",
    "qwen3.5-27b": "Qwen--Qwen3.5-27B",
    "qwen3.5-35b-a3b": "Qwen--Qwen3.5-35B-A3B",
    # The attention layers are those of the larger one.
    "lfm2-700m": "LiquidAI--LFM2-1.2B",
}
# fp8 by its bytes; the record has no flag.
FP8 = ("sgl-067",)


def rows(shared: Path) -> Iterator[dict[str, Any]]:
    """Starts whose geometry follows from the model alone, of caches that are modelled."""
    text = (shared / "measurements" / "sglang.jsonl").read_text(encoding="utf-8")
    for row in map(json.loads, text.splitlines()):
        formula, flags = row.get("formula") or {}, row.get("flags") or {}
        forked = "fork" in str(flags.get("kv_dtype"))
        if formula.get("independent") and formula["arch_key"] in CONFIGS and not forked:
            yield row


def printed_gib(row: dict[str, Any]) -> tuple[float, float]:
    """The pool's size and how far rounding may have moved it."""
    if row["k_size"] is not None:
        return row["k_size"] + row["v_size"], 0.0105
    size = row["kv_size"]
    # A size that is put together of others is known to three parts in a thousand.
    return size, 0.0055 if round(size, 2) == size else 0.003 * size


def computed_gib(row: dict[str, Any], shared: Path) -> float:
    spec = read_spec(str(shared / "configs" / CONFIGS[row["formula"]["arch_key"]]), offline=True)
    fp8 = "fp8" in str((row["flags"] or {}).get("kv_dtype")) or row["id"] in FP8
    plan = kvplan.size(
        spec, "H100", engine="sglang", context=1024, tp=row["tp"] or 1, kv_budget=GIB,
        kv_dtype="fp8_e4m3" if fp8 else "bfloat16", offline=True, advice=False,
    )  # fmt: skip
    assert plan.kv is not None
    return pool_bytes(row["kv_tokens"], 1, int(plan.kv.bytes_per_token)) / GIB


def test_the_size_of_the_pool_is_as_printed(shared: Path) -> None:
    wrong, checked = [], 0
    for row in rows(shared):
        size, rounding = printed_gib(row)
        computed = computed_gib(row, shared)
        checked += 1
        if abs(computed - size) > rounding:
            wrong.append((row["id"], size, computed))
    assert wrong == []
    assert checked == 18
