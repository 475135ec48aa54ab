"""SGLang's ranges: what is likely lies between their ends, also where tokens fall as bytes rise."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kvplan
from kvplan.engines.sglang import sizes
from kvplan.engines.sglang.history import NEWEST, rules_for
from kvplan.engines.sglang.layers import Part, Rows
from kvplan.plan import Plan

MODELS = (
    *("Qwen/Qwen3-8B", "openai/gpt-oss-120b", "Zyphra/Zamba2-7B"),
    "nvidia/NVIDIA-Nemotron-Nano-9B-v2",
)
GPUS = ("custom:1GiB", "RTX-4090-D-24GB", "L4-24GB", "H100-PCIe-80GB", "H200-SXM-141GB")


def planned(model: str, gpu: str, **more: Any) -> Plan:
    return kvplan.size(model, gpu, engine="sglang", offline=True, **({"context": 4096} | more))


def assert_ordered(plan: Plan) -> None:
    assert plan.kv is not None
    assert plan.capacity is not None
    kv, capacity = plan.kv, plan.capacity
    assert kv.budget_low is not None
    assert kv.budget_high is not None
    assert kv.budget_low <= kv.budget_bytes <= kv.budget_high
    assert capacity.tokens_low is not None
    assert capacity.tokens_high is not None
    assert capacity.tokens_low <= capacity.tokens <= capacity.tokens_high


@settings(max_examples=30)
@given(
    model=st.sampled_from(MODELS),
    gpu=st.sampled_from(GPUS),
    ratio=st.sampled_from((0.1, 0.9, 2.0, 10.0)),
    pp=st.sampled_from((1, 2)),
)
def test_ends_enclose_what_is_likely(model: str, gpu: str, ratio: float, pp: int) -> None:
    assert_ordered(
        planned(model, gpu, pp=pp, engine_options={"mamba_full_memory_ratio": ratio}),
    )


@pytest.mark.parametrize(
    ("model", "gpu", "more"),
    [
        ("Zyphra/Zamba2-7B", "RTX-4090-D-24GB", {}),
        (
            "nvidia/NVIDIA-Nemotron-Nano-9B-v2",
            "H100-PCIe-80GB",
            {"engine_options": {"mamba_full_memory_ratio": 10}},
        ),
        # The default share of so small a card is below 0.
        ("openai/gpt-oss-120b", "custom:1GiB", {"pp": 2, "context": 17}),
    ],
)
def test_ends_that_once_were_crossed(model: str, gpu: str, more: dict[str, Any]) -> None:
    assert_ordered(planned(model, gpu, **more))


STATES = sizes.Sizing(
    stages=(Rows(full=Part((0,), 200), slot_bytes=1000),),
    rules=rules_for(NEWEST),
    page=1,
    context=1000,
    window=0,
    window_ratio=0.8,
    state_ratio=0.9,
    slots_per_request=3,
    slots=None,
    cached=True,
    asked_requests=None,
    most_tokens=None,
    chunk=512,
    batches=2,
)


@given(
    low=st.integers(-2000, 20_000),
    more=st.integers(0, 6000),
    ratio=st.sampled_from((0.1, 0.9, 10.0)),
    page=st.sampled_from((1, 4)),
)
def test_fewest_and_most_tokens_of_all_bytes_between(
    low: int, more: int, ratio: float, page: int
) -> None:
    sizing = replace(STATES, state_ratio=ratio, page=page)
    found = [sizes.solve(sizing, available).tokens for available in range(low, low + more + 1)]
    assert sizes.token_range(sizing, low, low + more) == (min(found), max(found))
