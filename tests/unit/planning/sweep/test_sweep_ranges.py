"""The words for a series of values."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvplan.errors import UsageError
from kvplan.planning.sweep.words import read_values


@pytest.mark.parametrize(
    ("name", "text", "values"),
    [
        ("context", "8k..128k*2", (8192, 16384, 32768, 65536, 131072)),
        ("context", "8k..20k*2", (8192, 16384)),
        ("context", "1k..4k+1k", (1024, 2048, 3072, 4096)),
        ("context", "4k,8k..16k*2,auto", (4096, 8192, 16384, "auto")),
        ("concurrency", "1..5", (1, 2, 3, 4, 5)),
        ("concurrency", "1..10+4, 3, 5", (1, 5, 9, 3)),
        ("concurrency", "10..40*1.5", (10, 15, 22, 33)),
        ("kv_budget", "1GiB..4GiB*2", (2**30, 2**31, 2**32)),
        ("gpu_memory_utilization", "0.8..0.9+0.05", (0.8, 0.85, 0.9)),
        ("max_num_seqs", "64,256", (64, 256)),
        ("kv_dtype", "auto,fp8", ("auto", "fp8")),
        ("enforce_eager", "true,false,1", (True, False, 1)),
        ("speculative_config", '{"a": "b", "n": 2},null', ({"a": "b", "n": 2}, None)),
        ("lengths", "p50=1k,p95=8k/300; 4k/300", ("p50=1k,p95=8k/300", "4k/300")),
        ("image_size", "1024x768,512x512", ((1024, 768), (512, 512))),
        ("images", "0..2", (0, 1, 2)),
        ("model", "a/b..c,d", ("a/b..c", "d")),
    ],
)  # fmt: skip
def test_values(name: str, text: str, values: tuple[Any, ...]) -> None:
    found = read_values(name, text)
    assert found == values
    assert list(map(type, found)) == list(map(type, values))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("context", "128k..8k*2"),
        ("context", "8k..128k*1"),
        ("context", "8k..128k*0.5"),
        ("context", "8k..128k+0"),
        ("context", "auto..8k*2"),
        ("context", "lots"),
        ("context", ""),
        ("context", " , "),
        ("concurrency", "0..5"),
        ("concurrency", "1.5"),
        ("concurrency", "1..100000000000"),
        ("concurrency", "1..1000000000*1.0000001"),
        ("max_num_seqs", "a..b"),
        ("speculative_config", "{broken"),
        ("image_size", "1024"),
        ("kv_budget", "lots"),
    ],
)
def test_words_that_are_no_values(name: str, text: str) -> None:
    with pytest.raises(UsageError):
        read_values(name, text)


@given(
    st.integers(min_value=1, max_value=10**6),
    st.integers(min_value=0, max_value=10**4),
    st.integers(min_value=1, max_value=10**4),
)
def test_steps_are_pythons_own(low: int, length: int, step: int) -> None:
    text = f"{low}..{low + length}+{step}"
    assert read_values("concurrency", text) == tuple(range(low, low + length + 1, step))
