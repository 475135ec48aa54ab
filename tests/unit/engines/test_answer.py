"""The engine's part of a plan: verdict, cache figures, capacity, ledger and settings."""

from __future__ import annotations

from typing import Any

import pytest
from real_models import GIB, device, full, real, toy, window

from kvplan.engines.base import Answer, Setup
from kvplan.engines.vllm.engine import Vllm
from kvplan.hardware import Fact, GpuSpec
from kvplan.models.caches import IndexerCache, LatentCache
from kvplan.models.spec import Layer, ModelSpec
from kvplan.plan import Parallelism

BLOCK = 16 * 8 * 256 * 2  # one layer of 8 KV heads of 128 + 128 in bf16
TWO = toy(full(), full())


def answered(
    model: ModelSpec = TWO, *, context: int = 1000, concurrency: int | None = None, **changes: Any
) -> Answer:
    parallel = {key: changes.pop(key) for key in ("tp", "pp", "dp", "dcp") if key in changes}
    facts: dict[str, Any] = {
        "model": model, "gpu": device(80), "version": "0.33.0", "context": context
    }  # fmt: skip
    setup = Setup(**(facts | {"parallelism": Parallelism(**parallel)} | changes))
    return Vllm().prepare(setup).answer(context, concurrency)


def test_figures_of_one_group_by_hand() -> None:
    """100 MiB in blocks of 2 × 64 KiB: 800 of 16 tokens; 1,000 tokens hold 63 of them."""
    found = answered(kv_budget=(100 * 2**20,))
    assert found.kv.model_dump() == {
        "dtype": "bfloat16",
        "bytes_per_token": 2 * BLOCK / 16,
        "bytes_per_request": 63 * 2 * BLOCK,
        "budget_bytes": 100 * 2**20,
        "budget_low": None,
        "budget_high": None,
        "allocated_bytes": 800 * 2 * BLOCK,
        "storage_bytes": None,
    }
    assert found.capacity.model_dump() == {
        "blocks": 800,
        "block_size": 16,
        "bytes_per_block": 2 * BLOCK,
        "groups": (
            {
                "kind": "full",
                "layers": 2,
                "layer_indices": (0, 1),
                "page_bytes": BLOCK,
                "pages": (),
                "block_size": 16,
                "blocks_per_request": 63,
                "padding_bytes": 0,
            },
        ),
        "tokens": int(800 / 63 * 1000),
        "tokens_low": None,
        "tokens_high": None,
        "max_concurrency": 800 / 63,
        "max_context": 8192,
        "requests": 12,
    }


def test_figures_of_two_groups_by_hand() -> None:
    """Three windows in two groups and two full layers: a block is two pages, one group pads."""
    model = toy(full(), window(100), full(), window(100), window(100))
    found = answered(model, kv_budget=(GIB,), options={"max_num_batched_tokens": 200})
    windows = -(-(99 + 400) // 16) + 1
    assert [group.model_dump() for group in found.capacity.groups] == [
        {"kind": kind, "layers": len(indices), "layer_indices": indices, "page_bytes": BLOCK,
         "pages": (), "block_size": 16, "blocks_per_request": held, "padding_bytes": padding}
        for kind, indices, held, padding in (
            ("full", (0, 2), 63, 0),
            ("window", (1, 4), windows, 0),
            ("window", (3,), windows, BLOCK),
        )
    ]  # fmt: skip
    assert found.kv.bytes_per_request == (63 + 2 * windows) * 2 * BLOCK
    # Both windows are full at 1,000 tokens, so only one group still grows.
    assert found.kv.bytes_per_token == 2 * BLOCK / 16
    assert answered(model, context=100, kv_budget=(GIB,)).kv.bytes_per_token == 3 * 2 * BLOCK / 16


def test_the_smallest_block_is_the_block_size() -> None:
    latent = LatentCache(latent_dim=512, rope_dim=64)
    sparse = toy(latent, layers=(Layer(caches=(IndexerCache(head_dim=128), latent)),))
    assert answered(sparse, kv_budget=(GIB,)).capacity.block_size == 64


def test_pages_of_one_size_may_be_blocks_of_two() -> None:
    """64 tokens of a latent vector are 36,864 bytes in 8 bits, of 9 KV heads four times that.

    So a latent page of the same size has 256 tokens, and no byte is padding.
    """
    model = toy(LatentCache(latent_dim=512, rope_dim=64), window(100, 9), attention_heads=36)
    capacity = answered(model, kv_budget=(GIB,), kv_dtype="fp8").capacity
    assert [group.block_size for group in capacity.groups] == [256, 64]
    assert {group.page_bytes for group in capacity.groups} == {64 * 9 * 256} == {256 * 576}
    assert {group.padding_bytes for group in capacity.groups} == {0}
    assert capacity.block_size == 64


def test_what_pads_a_page_is_padding_too() -> None:
    """Windows of 24,576 bytes a block beside full layers of 65,536: four to a group, padded."""
    model = toy(*[full()] * 4, *[window(100, 3, 128)] * 4, attention_heads=24)
    groups = answered(model, kv_budget=(GIB,)).capacity.groups
    assert [(of.kind, of.page_bytes, of.padding_bytes) for of in groups] == [
        ("full", 65_536, 0), ("window", 65_536, 4 * (65_536 - 24_576))
    ]  # fmt: skip


def test_figures_are_those_of_the_fullest_stage() -> None:
    three = toy(*[full()] * 3)
    found = answered(three, pp=2, kv_budget=(GIB, GIB // 4))
    assert found.capacity.bytes_per_block == BLOCK
    assert found.kv.budget_bytes == GIB // 4
    assert found.capacity.blocks == GIB // 4 // BLOCK
    # Of the pages of the group, those on the other stage are no padding here.
    assert found.capacity.groups[0].padding_bytes == 0
    assert found.kv.bytes_per_request == 63 * BLOCK
    assert found.ledger[1].bytes == GIB // 4 % BLOCK


def test_what_was_asked_is_answered_back() -> None:
    found = answered(tp=2, dp=3, context=1234, kv_dtype="fp8", dtype="half", version="0.20.1")
    assert found.context == 1234
    assert found.parallelism == Parallelism(tp=2, dp=3)
    assert found.engine.name == "vllm"
    assert found.engine.version == "0.20.1"
    assert found.engine.options["kv_cache_dtype"] == "fp8"
    assert found.engine.options["dtype"] == "float16"
    assert found.engine.options["max_num_seqs"] == 1024
    assert "max_num_seqs" in found.engine.assumed
    assert found.total_bytes == 80 * GIB
    assert found.total_source == "a reference case"


def test_a_bare_amount_of_memory_says_whose_rules_it_takes() -> None:
    bare = GpuSpec(
        id="custom:80GiB",
        name="80 GiB",
        vendor="custom",
        architecture="unknown",
        torch_total_gib=Fact(value=80, source="given"),
    )
    assert answered(gpu=bare).engine.assumed[-1] == "compute_capability (that of an H100)"
    assert "compute_capability (that of an H100)" not in answered().engine.assumed


# 100 MiB hold 12 requests of 1,000 tokens.
@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({}, "fits"),
        ({"concurrency": 1}, "fits"),
        ({"concurrency": 12}, "fits"),
        ({"concurrency": 13}, "does_not_fit"),
        ({"concurrency": 24, "dp": 2}, "fits"),
        ({"concurrency": 25, "dp": 2}, "does_not_fit"),
        ({"context": 8192}, "fits"),
        ({"context": 12_784}, "fits"),
        ({"context": 12_785}, "does_not_fit"),
        ({"context": 12_784, "concurrency": 1}, "fits"),
        ({"options": {"max_num_seqs": 5}, "concurrency": 6}, "does_not_fit"),
        ({"options": {"max_num_seqs": 5}, "concurrency": 5}, "fits"),
    ],
)
def test_verdicts(changes: dict[str, Any], verdict: str) -> None:
    assert answered(**({"kv_budget": (100 * 2**20,)} | changes)).verdict == verdict


def test_too_little_for_the_weights_does_not_fit() -> None:
    found = answered(real("llama-3.1-70b"), context=100)
    assert found.verdict == "does_not_fit"
    assert found.kv.budget_bytes < 0
    assert (found.kv.allocated_bytes, found.capacity.blocks, found.capacity.tokens) == (0, 0, 0)
    assert (found.capacity.max_context, found.capacity.requests) == (0, 0)
    assert sum(line.bytes for line in found.ledger) == 80 * GIB


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({"kv_budget": (GIB,)}, ["kv_cache", "budget_rest"]),
        (
            {"options": {"kv_cache_memory_bytes": GIB}},
            ["weights.mlp", "activation_peak", "compilation", "non_torch", "cuda_graphs",
             "kv_cache", "cuda_context", "unused"],
        ),
        (
            {},
            ["weights.mlp", "activation_peak", "compilation", "non_torch", "cuda_graphs",
             "kv_cache", "budget_rest", "cuda_context", "outside_unused"],
        ),
        (
            {"kv_budget": (GIB,), "options": {"kv_cache_memory_bytes": 2 * GIB}},
            ["kv_cache", "budget_rest"],
        ),
    ],
)  # fmt: skip
def test_the_ledger_that_belongs_to_the_question(changes: dict[str, Any], names: list[str]) -> None:
    assert [line.name for line in answered(**changes).ledger] == names


def test_the_range_of_the_cache_reaches_every_figure() -> None:
    found = answered()
    kv, capacity = found.kv, found.capacity
    assert kv.budget_low is not None
    assert kv.budget_high is not None
    low, high = kv.budget_low // (2 * BLOCK), kv.budget_high // (2 * BLOCK)
    assert capacity.tokens_low == int(low / 63 * 1000)
    assert capacity.tokens_high == int(high / 63 * 1000)
    pool = next(line for line in found.ledger if line.name == "kv_cache")
    assert (pool.low, pool.high) == (low * 2 * BLOCK, high * 2 * BLOCK)
    assert low < capacity.blocks < high


def test_a_given_pool_has_no_range() -> None:
    found = answered(options={"kv_cache_memory_bytes": GIB})
    assert (found.kv.budget_low, found.kv.budget_high) == (None, None)
    assert (found.capacity.tokens_low, found.capacity.tokens_high) == (None, None)
    pool = next(line for line in found.ledger if line.name == "kv_cache")
    assert pool.low == pool.bytes == pool.high == GIB // (2 * BLOCK) * 2 * BLOCK
