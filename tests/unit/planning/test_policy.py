"""What remains of a cache under policies that drop entries, against lists of entries."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvplan import api
from kvplan.errors import UsageError
from kvplan.models.formats import plain_kv
from kvplan.planning.policy import (
    HeavyHitters,
    PromptBudget,
    PromptRatio,
    Streaming,
    implemented_by,
    not_in,
    parse_policy,
    request_bytes,
)

PROMPT, MADE = st.integers(1, 300), st.integers(0, 100)
BF16 = plain_kv("bfloat16")


@given(PROMPT, MADE, st.integers(0, 8), st.integers(1, 64))
def test_streaming_keeps_the_first_and_the_last(
    prompt: int, made: int, sinks: int, window: int
) -> None:
    entries = list(range(prompt + made))
    kept = set(entries[:sinks]) | set(entries[-window:])
    assert Streaming(sinks, window).kept(prompt, made) == len(kept)


@given(PROMPT, MADE, st.integers(1, 64))
def test_a_budget_of_heavy_hitters_holds_at_all_times(prompt: int, made: int, budget: int) -> None:
    entries = 0
    for _ in range(prompt + made):
        entries = min(entries + 1, budget)
    assert HeavyHitters(budget).kept(prompt, made) == entries


@given(PROMPT, MADE, st.integers(1, 400))
def test_snapkv_cuts_the_prompt_once(prompt: int, made: int, budget: int) -> None:
    entries = list(range(prompt))
    entries = entries if prompt < budget else entries[:budget]
    entries += range(made)
    assert PromptBudget(budget).kept(prompt, made) == len(entries)


@given(PROMPT, MADE, st.floats(0, 0.99))
def test_kvpress_drops_a_share_of_the_prompt(prompt: int, made: int, ratio: float) -> None:
    kept = PromptRatio(ratio).kept(prompt, made)
    assert made + 1 <= kept <= prompt + made
    assert kept - made == pytest.approx(prompt * (1 - ratio), abs=1)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("streaming:sinks=4,window=4096", Streaming(4, 4096)),
        ("streaming:window=1k", Streaming(4, 1024)),
        ("streaming:sinks=0,window=8", Streaming(0, 8)),
        ("h2o:budget=2k", HeavyHitters(2048)),
        ("snapkv:budget=2048", PromptBudget(2048)),
        ("kvpress:ratio=0.5", PromptRatio(0.5)),
    ],
)
def test_policies_are_written_like_this(text: str, rule: object) -> None:
    assert parse_policy(text).rule == rule


@pytest.mark.parametrize(
    "text",
    ["", "lru", "snapkv", "snapkv:window=4", "kvpress:ratio=1", "kvpress:ratio=-1", "h2o:budget=0",
     "streaming:sinks=4", "h2o:budget"],
)  # fmt: skip
def test_and_not_like_that(text: str) -> None:
    with pytest.raises(UsageError):
        parse_policy(text)


def test_only_layers_that_keep_every_token_lose_entries() -> None:
    """Gemma 3 1B: 22 of 26 layers have a window of 512 already."""
    model = api.read_spec("google/gemma-3-1b-it", offline=True)
    layer = 2 * 256 * 2  # one head of 256, keys and values in two bytes
    full = sum(1 for one in model.layers for cache in one.caches if cache.kind == "full")
    windows = sum(1 for one in model.layers for cache in one.caches if cache.kind == "window")
    assert (full, windows) == (4, 22)
    whole = full * 8192 * layer + windows * 512 * layer
    rule = PromptRatio(0.0)
    assert request_bytes(model, rule, (8000, 192), BF16) == whole
    half = full * (4000 + 192) * layer + windows * 512 * layer
    assert request_bytes(model, PromptRatio(0.5), (8000, 192), BF16) == half


@pytest.mark.parametrize("engine", ["vllm", "sglang", "tensorrt-llm", "llama.cpp", "ollama"])
@pytest.mark.parametrize(
    "text", ["streaming:window=8", "h2o:budget=8", "snapkv:budget=8", "kvpress:ratio=0.5"]
)
def test_no_serving_engine_has_any_of_them(engine: str, text: str) -> None:
    said = not_in(engine, parse_policy(text))
    assert said is not None
    assert engine in said
    assert implemented_by(parse_policy(text)) in said
    assert not_in("transformers", parse_policy(text)) is None
