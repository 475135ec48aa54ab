"""Layer specs as vLLM records them → kvplan's pages, and what kvplan plans with them.

Recorded by 0.33.0: an older release counts the page of unequal keys and values, and the blocks of
a recurrent state, in its own way.
"""

from __future__ import annotations

import math
from typing import Any

from vllm_cases import case_of

from kvplan.engines.vllm import groups
from kvplan.engines.vllm.history import Rules, rules_for
from kvplan.engines.vllm.pages import Kind, PageSpec, Sides, as_counted
from kvplan.engines.vllm.pool import Pool

SIZES = {"bfloat16": 2, "float16": 2, "float32": 4, "uint8": 1}
KINDS: dict[str, Kind] = {
    "FullAttentionSpec": "full",
    "SlidingWindowSpec": "window",
    "ChunkedLocalAttentionSpec": "chunked",
    "CrossAttentionSpec": "cross",
}


def page_of(spec: dict[str, Any], rules: Rules, *, mode: str, encoder_tokens: int) -> PageSpec:
    """A recorded spec as a release would page it."""
    block, page = spec["block_size"], spec["page_size_bytes"]
    if spec["cls"] == "MambaSpec":
        used = sum(
            math.prod(shape) * SIZES[dtype]
            for shape, dtype in zip(spec["shapes"], spec["dtypes"], strict=True)
        )
        held = _held(spec, rules, mode)
        return PageSpec("recurrent", block, page, held=held, padding=page - used)
    if spec["cls"] == "MLAAttentionSpec":
        return PageSpec("indexer" if spec.get("cache_role") else "latent", block, page)
    kind = KINDS[spec["cls"]]
    span = spec.get("sliding_window") or spec.get("attention_chunk_size") or 0
    size = spec["num_kv_heads"] * SIZES[spec["dtype"]]
    sides = Sides(spec["num_kv_heads"], spec["head_size"] * size, spec["head_size_v"] * size)
    found = PageSpec(kind, block, page, encoder_tokens if kind == "cross" else span, sides)
    return as_counted(found, rules.key_twice)


def _held(spec: dict[str, Any], rules: Rules, mode: str) -> int | None:
    if rules.state_blocks != "by_mode":
        return {"one": 1, "by_length": None}[rules.state_blocks]
    checkpoints = spec.get("num_prefill_checkpoint_blocks", 0) if rules.checkpoint_blocks else 0
    drafts = spec.get("num_speculative_blocks", 0)
    assert isinstance(drafts, int)
    assert isinstance(checkpoints, int)
    return 2 + drafts + checkpoints if mode == "align" else 1 + drafts


def pool_of(
    specs: list[dict[str, Any]],
    layers: list[int],
    rules: Rules,
    *,
    mode: str,
    in_flight: int,
    encoder_tokens: int = 0,
    kept_whole: bool = False,
) -> Pool:
    """The pool of one rank with these layers."""
    pages = [page_of(spec, rules, mode=mode, encoder_tokens=encoder_tokens) for spec in specs]
    placed: list[tuple[PageSpec, ...]] = [(pages[index],) for index in layers]
    if kept_whole:
        placed = groups.without_hybrid_manager(placed, rules)
    return Pool(
        groups=groups.group(placed, ((0, len(placed)),), rules),
        rules=rules,
        in_flight=in_flight,
        dcp=1,
        blocks_override=None,
    )


def planned_by_hand(row: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """(what kvplan plans, what vLLM planned) for a case that starts from specs made by hand."""
    rules, resolved, (worker,) = (
        rules_for(row["vllm_version"]),
        row["resolved"],
        row["worker_specs"],
    )
    pool = pool_of(
        worker["specs"],
        worker["layer_spec_index"],
        rules,
        mode=resolved["mamba_cache_mode"],
        in_flight=resolved["max_in_flight_tokens"],
        encoder_tokens=resolved["max_num_encoder_input_tokens"],
    )
    case = case_of(row)
    blocks = pool.blocks(case["available"])
    length = resolved["max_model_len"]
    longest = pool.longest(pool.usable_blocks(case["available"]), length)
    if row["status"] == "vllm_error":
        return {"longest": longest} if longest < length else {}, case["expected"]
    if case["context"] == "auto":
        length = longest
    got = {
        "blocks": blocks,
        "tokens": pool.tokens(blocks, length),
        "concurrency": pool.concurrency(blocks, length),
        "bytes_per_block": list(pool.stage_block_bytes),
        "context": length,
        "held": sorted(pool.group_blocks(group, length) for group in pool.groups),
        "layers": sorted(group.layers for group in pool.groups),
    }
    return got, case["expected"]


def planned_by_release(row: dict[str, Any]) -> dict[str, Any]:
    """What kvplan plans for a case of an older release's planning code."""
    rules = rules_for(row["vllm_version"])
    in_flight = {"in_flight": "max_in_flight_tokens", "batch": "max_num_batched_tokens"}
    pool = pool_of(
        row["specs"],
        row["layer_spec_index"],
        rules,
        mode=row["mamba_cache_mode"],
        in_flight=row[in_flight[rules.window_tokens]],
        kept_whole=row["disable_hybrid_kv_cache_manager"],
    )
    blocks, length = pool.blocks((row["available_bytes"],)), row["max_model_len"]
    return {
        "num_blocks": blocks,
        "num_groups": len(pool.groups),
        "group_sizes": [group.layers for group in pool.groups],
        "max_concurrency": pool.concurrency(blocks, length),
        "kv_cache_size_tokens": pool.tokens(blocks, length),
    }
