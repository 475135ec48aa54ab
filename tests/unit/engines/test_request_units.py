"""What every engine says of its pools: as many requests as its own figures hold."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvplan import api
from kvplan.engines.base import Prepared
from kvplan.errors import NotModelledError
from kvplan.sources.gpus import find_gpu

_OPTIONS: dict[str, dict[str, Any]] = {
    "llama.cpp": {"n_ctx": 131_072, "n_seq_max": 64, "kv_unified": True}
}
_CONTEXT = 8192
_PLAIN, _WINDOWS = "meta-llama/Llama-3.1-8B-Instruct", "openai/gpt-oss-20b"
_ENGINES = ("vllm", "sglang", "tensorrt-llm", "llama.cpp")


def prepared(engine: str, model: str) -> Prepared:
    """A configuration of one H200."""
    return api.prepare(
        api.read_spec(model, offline=True),
        find_gpu("H200"),
        engine=engine,
        context=_CONTEXT,
        options=_OPTIONS.get(engine, {}),
    )


PREPARED = {(e, m): prepared(e, m) for e in _ENGINES for m in (_PLAIN, _WINDOWS)}


@pytest.mark.parametrize("engine", _ENGINES)
def test_pools_hold_what_the_figures_say(engine: str) -> None:
    one = PREPARED[engine, _PLAIN]
    pools = one.pools(_CONTEXT)
    units = one.request_units(_CONTEXT)
    held = min(pool.count // part for pool, part in zip(pools.pools, units, strict=True))
    assert min(held, pools.sequences) * pools.replicas == one.figures(_CONTEXT).requests


@given(st.sampled_from(sorted(PREPARED)), st.integers(1, 40_000), st.integers(0, 5000))
def test_units_never_shrink_and_step_only_where_said(
    key: tuple[str, str], tokens: int, more: int
) -> None:
    one = PREPARED[key]
    step = one.pools(_CONTEXT).step
    units = one.request_units(tokens)
    assert all(a <= b for a, b in zip(units, one.request_units(tokens + more), strict=True))
    assert units == one.request_units(-(-tokens // step) * step)


@given(st.sampled_from(sorted(PREPARED)), st.integers(1, 40_000), st.integers(0, 40_000))
def test_own_units_are_part_of_all_units(key: tuple[str, str], tokens: int, shared: int) -> None:
    one, shared = PREPARED[key], min(shared, tokens)
    own = one.own_units(tokens, shared)
    whole = one.request_units(tokens)
    assert all(0 <= part <= all_ for part, all_ in zip(own, whole, strict=True))
    assert one.own_units(tokens, 0) == whole


def test_only_whole_blocks_are_shared() -> None:
    one = PREPARED["vllm", _PLAIN]
    assert one.request_units(1000) == (63,)
    assert one.own_units(1000, 500) == (63 - 31,)


def test_a_window_that_moved_on_shares_nothing() -> None:
    one = PREPARED["vllm", _WINDOWS]
    full = 5000 // 16
    assert one.request_units(20_000)[0] - one.own_units(20_000, 5000)[0] == full


def test_decoding_windows_hold_less_than_a_start_is_sized_for() -> None:
    assert PREPARED["vllm", _WINDOWS].request_units(_CONTEXT)[0] == 512 + 10


def test_a_batch_of_transformers_is_no_pool() -> None:
    one = prepared("transformers", _PLAIN)
    with pytest.raises(NotModelledError, match="no pool"):
        one.pools(_CONTEXT)
