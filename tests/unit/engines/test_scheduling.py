"""vLLM's pool as simulations fill it: the engine's own blocks, groups and limits."""

from __future__ import annotations

from typing import Any

import pytest

from kvplan import api
from kvplan.engines.base import BlockPool, Paged
from kvplan.engines.vllm.deployment import VllmDeployment
from kvplan.plan import Parallelism
from kvplan.planning.simulate.memory import Memory
from kvplan.planning.simulate.tiers import Tiers
from kvplan.sources.gpus import find_gpus


def pool_of(model: str, engine: str = "vllm", **changes: Any) -> BlockPool:
    spec = api.read_spec(model, offline=True)
    prepared = api.prepare(spec, find_gpus("H100")[0], engine=engine, **changes)
    assert isinstance(prepared, Paged)
    return prepared.block_pool()


def test_a_dense_model_has_one_group_and_the_logged_blocks_but_one() -> None:
    pool = pool_of("meta-llama/Llama-3.1-8B-Instruct", kv_budget=(2**31 * 10,))
    plan = api.size("meta-llama/Llama-3.1-8B-Instruct", "H100", kv_budget=2**31 * 10, offline=True)
    assert plan.capacity is not None
    assert pool.blocks == plan.capacity.blocks - 1
    assert pool.block_bytes == plan.capacity.bytes_per_block
    (group,) = pool.groups
    assert (group.keeps, group.block_tokens, group.token_bytes) == ("all", 16, 131_072)
    assert pool.caches_prefixes
    assert pool.admits_whole


def test_older_releases_admit_a_prompt_by_its_first_chunk() -> None:
    assert not pool_of("meta-llama/Llama-3.1-8B-Instruct", "vllm==0.10.0").admits_whole


def test_windows_keep_their_span_and_are_counted_at_most() -> None:
    pool = pool_of("google/gemma-3-27b-it")
    windows = [group for group in pool.groups if group.keeps == "window"]
    assert len(windows) == 6
    assert {group.span for group in windows} == {1024}
    # Two batches in flight and the window, one block more for where it begins.
    assert {group.most for group in windows} == {(1023 + 2 * 8192) // 16 + 2}


def test_a_request_is_counted_as_the_engine_counts_it() -> None:
    for model in ("meta-llama/Llama-3.1-8B-Instruct", "google/gemma-3-27b-it"):
        spec = api.read_spec(model, offline=True)
        prepared = api.prepare(spec, find_gpus("H100")[0])
        assert isinstance(prepared, VllmDeployment)
        pool = prepared.block_pool()
        memory = Memory(pool, Tiers((), len(pool.groups), pool.block_bytes))
        for tokens in (20_000, 65_536, 131_072):
            assert memory.most(tokens) == prepared.pool.request_blocks(tokens)


def test_recurrent_states_hold_fixed_blocks_and_find_no_prefix() -> None:
    pool = pool_of("Qwen/Qwen3-Next-80B-A3B-Instruct")
    assert {group.keeps for group in pool.groups} == {"all", "none"}
    assert all(group.fixed >= 1 for group in pool.groups if group.keeps == "none")
    assert not pool.caches_prefixes


@pytest.mark.parametrize("context", [8192, 131_072])
def test_decode_context_parallelism_spreads_a_block_over_ranks(context: int) -> None:
    pool = pool_of(
        "deepseek-ai/DeepSeek-V3", parallelism=Parallelism(tp=8, dcp=8), kv_budget=(2**34,),
        context=context,
    )  # fmt: skip
    assert {group.block_tokens for group in pool.groups} == {8 * 16}
