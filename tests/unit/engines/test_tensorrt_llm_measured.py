"""Bytes of a token and blocks against what TensorRT-LLM printed when it started."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kvplan
from kvplan.api import read_spec
from kvplan.engines.tensorrt_llm import blocks
from kvplan.engines.tensorrt_llm.blocks import Share, Sizing
from kvplan.engines.tensorrt_llm.pages import Pool

GIB = 2**30
# Models of the collection, and a configuration with the same geometry.
CONFIGS = {
    "Qwen3-Reranker-0.6B": "Qwen--Qwen3-0.6B",
    "Llama-3.1-8B-Instruct (quantized engine)": "meta-llama--Llama-3.1-8B-Instruct",
    "TinyLlama-1.1B-Chat": "TinyLlama--TinyLlama-1.1B-Chat-v1.0",
    "SmolLM2-135M-Instruct": "HuggingFaceTB--SmolLM2-135M-Instruct",
    "Llama-7B SmoothQuant int8": "meta-llama--Llama-2-7b-hf",
}


def rows(shared: Path) -> Iterator[dict[str, Any]]:
    text = (shared / "measurements" / "trtllm.jsonl").read_text(encoding="utf-8")
    yield from map(json.loads, text.splitlines())


def computed_bytes(row: dict[str, Any], shared: Path) -> int:
    spec = read_spec(str(shared / "configs" / CONFIGS[row["model"]]), offline=True)
    kv_dtype = "fp8" if "fp8" in str((row["flags"] or {}).get("kv_dtype")) else "auto"
    plan = kvplan.size(
        spec, "H100", engine="tensorrt-llm", context=1024, tp=row["tp"] or 1, kv_budget=GIB,
        kv_dtype=kv_dtype, offline=True, advice=False,
    )  # fmt: skip
    assert plan.kv is not None
    return int(row["kv_tokens"] * plan.kv.bytes_per_token)


def test_the_size_of_the_pool_is_as_printed(shared: Path) -> None:
    checked = 0
    for row in rows(shared):
        if not (row.get("formula") or {}).get("independent"):
            continue
        computed, checked = computed_bytes(row, shared), checked + 1
        assert abs(computed / GIB - row["kv_size"]) <= 0.0055, row["id"]
        exact = (row["other"] or {}).get("kv_bytes")
        assert exact in (None, computed)
    assert checked == 5


def _blocks(token_bytes: int, block: int, size: float) -> int:
    pool = Pool(
        window=4096, indices=(0,), token_bytes=token_bytes, estimated_bytes=token_bytes,
        scale_bytes=0, latent=False,
    )  # fmt: skip
    sizing = Sizing(
        stages=((pool,),), block=block, rounds_up=True, max_tokens=None, max_bytes=None, batch=1
    )
    return blocks.solve(sizing, [Share(int(size), int(size))])[4096]


def test_blocks_follow_from_what_was_available(shared: Path) -> None:
    """The fraction of what is printed as available, to a hundredth of a GiB, in whole blocks."""
    checked = 0
    for row in rows(shared):
        other, flags = row["other"] or {}, row["flags"] or {}
        fraction, printed = flags.get("free_gpu_memory_fraction"), other.get("primary_blocks")
        token_bytes = (row.get("formula") or {}).get("bytes_per_token_per_rank")
        if None in (fraction, printed, token_bytes, other.get("available_gib")):
            continue
        checked += 1
        low, high = (
            _blocks(
                token_bytes,
                flags["tokens_per_block"],
                (other["available_gib"] + off) * GIB * fraction,
            )
            for off in (-0.005, 0.005)
        )
        assert low <= printed <= high, row["id"]
    assert checked == 3
