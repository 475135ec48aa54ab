"""From bytes to blocks and requests in TensorRT-LLM: printed starts, small pools, laws."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvplan.engines.tensorrt_llm import blocks, history
from kvplan.engines.tensorrt_llm.blocks import Share, Sizing
from kvplan.engines.tensorrt_llm.pages import Pool, pipeline_stages
from kvplan.errors import EngineRefusesError

GIB = 2**30
FULL = Pool(
    window=1000, indices=(0,), token_bytes=100, estimated_bytes=100, scale_bytes=0, latent=False
)
LOCAL = replace(FULL, window=64, indices=(1,), token_bytes=300, estimated_bytes=300)
ONE = Sizing(
    stages=((FULL,),), block=32, rounds_up=False, max_tokens=None, max_bytes=None, batch=2048
)
TWO = replace(ONE, stages=((LOCAL, FULL),))


def share(size: int) -> Share:
    return Share(size, size)


def token(size: int) -> Sizing:
    """One window that takes ``size`` bytes a token, in blocks of 64 that are rounded up."""
    pool = replace(FULL, token_bytes=size, estimated_bytes=size)
    return replace(ONE, stages=((pool,),), block=64, rounds_up=True)


@pytest.mark.parametrize(
    ("token_bytes", "gib", "fraction", "printed"),
    [
        # docs/source/reference/memory.md: 70.48 GiB and 0.9 give 4060 blocks.
        (262_144, 70.48, 0.9, 4060),
        # NVIDIA/TensorRT-LLM#2268: 21.89 GiB and 0.9 give 631.
        (524_288, 21.89, 0.9, 631),
    ],
)
def test_blocks_as_the_cpp_path_printed_them(
    token_bytes: int, gib: float, fraction: float, printed: int
) -> None:
    # What is printed as available is rounded to a hundredth.
    low, high = (
        blocks.solve(token(token_bytes), [share(int((gib + off) * GIB * fraction))])[1000]
        for off in (-0.005, 0.005)
    )
    assert low <= printed <= high
    assert high - low <= 1


def test_the_last_block_may_be_beyond_the_budget() -> None:
    # 8,000 bytes are 80 tokens.
    assert blocks.solve(ONE, [share(8000)]) == {1000: 2}
    assert blocks.solve(replace(ONE, rounds_up=True), [share(8000)]) == {1000: 3}
    assert blocks.solve(ONE, [share(-8000)]) == {1000: 0}


def test_limits_of_options() -> None:
    assert blocks.solve(replace(ONE, max_tokens=40), [share(8000)]) == {1000: 1}
    assert blocks.solve(replace(ONE, max_bytes=3200), [share(8000)]) == {1000: 1}


def test_windows_get_equal_shares() -> None:
    # Half of 64,000 each: 106 tokens of 300 bytes, 320 of 100.
    found = blocks.solve(TWO, [share(64_000)])
    assert found == {64: 3, 1000: 10}
    assert blocks.allocated(TWO, found, 0) == 3 * 32 * 300 + 10 * 32 * 100
    assert blocks.stage_bytes(TWO, 0) == 32 * 400


def test_the_fullest_rank_decides() -> None:
    sizing = replace(ONE, stages=((FULL,), (replace(FULL, token_bytes=200, estimated_bytes=200),)))
    assert blocks.solve(sizing, [share(12_800), share(12_800)]) == {1000: 2}


def test_what_is_free_limits_replicated_heads() -> None:
    # The estimate has half of what is allocated.
    pool = replace(FULL, estimated_bytes=50)
    sizing = replace(ONE, stages=((pool,),))
    assert blocks.solve(sizing, [Share(estimated=6400, free=9600)]) == {1000: 3}
    assert blocks.solve(sizing, [Share(estimated=6400, free=10**6)]) == {1000: 4}


def test_scales_are_left_out_where_windows_share() -> None:
    scaled = replace(FULL, token_bytes=100, scale_bytes=20)
    sizing = replace(TWO, stages=((LOCAL, scaled),))
    # 32,000 // 80 is 400 tokens; with scales it were 320.
    assert blocks.solve(sizing, [share(64_000)])[1000] == 12


def test_blocks_of_a_request() -> None:
    assert blocks.request_blocks(TWO, 1000, 100) == 4
    # 64 tokens that do not begin at a block's start reach into a third.
    assert blocks.request_blocks(TWO, 64, 500) == 3
    assert blocks.request_blocks(TWO, 64, 33) == 2


def test_requests() -> None:
    found = {64: 30, 1000: 40}
    assert blocks.by_memory(TWO, found, 100) == 10
    assert blocks.concurrency(TWO, found, 200) == pytest.approx(40 / 7)
    assert blocks.longest(TWO, found, 10**6) == 1280
    assert blocks.longest(TWO, found, 500) == 500
    assert blocks.longest(TWO, {64: 1, 1000: 40}, 500) == 0


SIZINGS = st.builds(
    replace,
    st.sampled_from([ONE, TWO]),
    block=st.sampled_from([32, 64]),
    rounds_up=st.booleans(),
    max_tokens=st.none() | st.integers(1, 10**6),
)


@given(SIZINGS, st.integers(-(10**6), 10**8), st.integers(0, 10**8), st.integers(1, 5000))
def test_more_bytes_never_hold_less(sizing: Sizing, few: int, more: int, length: int) -> None:
    less, most = (blocks.solve(sizing, [share(size)]) for size in (few, few + more))
    assert all(0 <= less[window] <= most[window] for window in less)
    assert blocks.by_memory(sizing, less, length) <= blocks.by_memory(sizing, most, length)


@given(SIZINGS, st.integers(0, 10**8), st.integers(1, 5000), st.integers(0, 5000))
def test_a_longer_request_never_holds_less(
    sizing: Sizing, size: int, length: int, more: int
) -> None:
    found = blocks.solve(sizing, [share(size)])
    held = (blocks.by_memory(sizing, found, tokens) for tokens in (length, length + more))
    first, second = held
    assert first >= second


@given(SIZINGS, st.integers(0, 10**8))
def test_pools_stay_in_the_budget_but_for_a_block(sizing: Sizing, size: int) -> None:
    found = blocks.solve(sizing, [share(size)])
    beyond = blocks.stage_bytes(sizing, 0) if sizing.rounds_up else 0
    assert blocks.allocated(sizing, found, 0) <= size + beyond


def test_stages_share_layers() -> None:
    assert pipeline_stages(10, 4) == ((0, 3), (3, 6), (6, 8), (8, 10))
    with pytest.raises(EngineRefusesError, match="3 pipeline stages"):
        pipeline_stages(2, 3)


def test_releases() -> None:
    rules = {v: history.rules_for(v) for v in ("0.9", "0.18.1", "0.19", "1.0", "1.2", "1.3")}
    assert [r.tokens_per_block for r in rules.values()] == [64, 64, 32, 32, 32, 32]
    assert [r.backend for r in rules.values()] == ["tensorrt"] * 3 + ["pytorch"] * 3
    assert [r.rounds_up for r in rules.values()] == [True] * 4 + [False] * 2
    assert [r.derives_windows for r in rules.values()] == [False] * 5 + [True]
    assert history.is_newer_than_modelled("1.4.0")
    assert not history.is_newer_than_modelled("1.3.9")
    with pytest.raises(EngineRefusesError, match="older than the oldest"):
        history.rules_for("0.8.0")
    assert all(change.source for change in history.CHANGES)
