"""Slots of llama.cpp and Ollama: how many there are; all figures speak of the same start."""

from __future__ import annotations

from typing import Any

import pytest

import kvplan
from kvplan.plan import Plan
from kvplan.reports.headline import headline
from kvplan.reports.markdown_report import markdown_report
from kvplan.reports.text_report import text_report

LLAMA = "meta-llama/Llama-3.1-8B-Instruct"


def size(
    gpu: str, model: str = LLAMA, *, options: dict[str, Any] | None = None, **more: Any
) -> Plan:
    asked: dict[str, Any] = {"weights": "gguf:Q4_K_M", "engine": "llama.cpp", "offline": True}
    return kvplan.size(model, gpu, engine_options=options or {}, **(asked | more))


def codes(plan: Plan) -> list[str]:
    return [reason.code for reason in plan.reasons]


def test_what_memory_holds_has_a_range_and_the_start_of_it_is_named() -> None:
    plan = size("RTX 4090", context=5000, concurrency=3)
    assert plan.capacity is not None
    held = plan.capacity.requests
    assert plan.engine.options["n_seq_max"] == 3
    assert plan.capacity.tokens == held * 5120
    low, high = plan.capacity.tokens_low, plan.capacity.tokens_high
    assert low is not None
    assert high is not None
    assert low <= plan.capacity.tokens <= high
    assert low < high
    assert f"if started with n_seq_max {held} and n_ctx {held * 5120:,}" in headline(plan)
    given = size("RTX 4090", context=5000, options={"n_seq_max": held, "n_ctx": held * 5120})
    assert given.verdict == "fits"
    assert given.capacity is not None
    assert (given.capacity.requests, given.capacity.tokens_low) == (held, None)
    assert "started with" not in headline(given)


@pytest.mark.parametrize(
    ("options", "more", "slots", "context"),
    [
        ({"n_ctx": 32_768}, {"context": 8192}, 4, 8192),
        ({"n_ctx": 32_768}, {"context": 5000}, 6, 5000),
        ({"n_ctx": 32_768}, {"context": 65_536}, 1, 32_768),
        ({"n_ctx": 32_768}, {}, 1, 32_768),
        ({"n_ctx": 262_144}, {}, 1, 262_144),
        ({"n_ctx": 32_768}, {"context": 8192, "concurrency": 2}, 2, 8192),
        ({"n_ctx": 32_768, "n_seq_max": 4}, {"context": 16_384}, 4, 8192),
        ({"n_ctx": 0}, {}, 1, 131_072),
        ({"n_ctx": 0, "n_seq_max": 4}, {}, 4, 32_768),
    ],
)
def test_given_cells_and_slots_override_what_was_asked_for(
    options: dict[str, int], more: dict[str, int], slots: int, context: int
) -> None:
    """Headline, requests and n_ctx speak of the same start."""
    plan = size("H100", options=options, **more)
    assert plan.capacity is not None
    chosen = plan.engine.options
    assert (chosen["n_seq_max"], plan.workload.context) == (slots, context)
    assert plan.capacity.requests == slots
    assert plan.capacity.tokens == chosen["n_ctx"] >= (options["n_ctx"] or 131_072)
    assert f"{slots} request" in headline(plan)


@pytest.mark.parametrize(
    ("gpu", "named"),
    [
        ("L4 + T4", "L4-24GB + T4-16GB hold "),
        ("T4 + L4 + T4 + cpu:64GiB", "2 × T4-16GB + L4-24GB + cpu:64GiB hold "),
        ("L4 + L4", "2 × L4-24GB hold "),
        ("cpu:64GiB", "1 × cpu:64GiB holds "),
    ],
)
def test_the_headline_names_each_kind_of_device(gpu: str, named: str) -> None:
    assert headline(size(gpu, context=4096)).startswith(f"Fits: {named}")


def test_unlike_devices_are_not_said_to_have_the_same() -> None:
    plan = size("RTX 4090 + RTX 3060", "meta-llama/Llama-3.1-70B-Instruct", context=8192)
    assert headline(plan).startswith(
        "Does not fit: GPU0 (RTX-4090-24GB) has too little for weights"
    )


def test_slots_that_do_not_fit_are_not_called_one_request() -> None:
    plan = size("RTX 4090", options={"n_seq_max": 4}, context=131_072)
    assert "cannot hold 4 slots of 131,072 tokens" in headline(plan)


def test_a_host_whose_memory_nobody_stated_holds_the_start_and_no_more() -> None:
    plan = size("RTX 3060", context=8192, options={"no_kv_offload": True})
    assert plan.capacity is not None
    assert plan.capacity.requests == 1
    assert {"host_memory_not_stated", "cache_elsewhere"} <= set(codes(plan))
    stated = size("RTX 3060 + cpu:64GiB", context=8192, options={"no_kv_offload": True})
    assert stated.capacity is not None
    assert stated.capacity.requests > 50
    assert "host_memory_not_stated" not in codes(stated)
    three = size("RTX 3060", context=8192, concurrency=3, options={"no_kv_offload": True})
    assert three.capacity is not None
    assert three.capacity.requests == 3
    assert "cache_elsewhere" not in codes(size("RTX 3060", context=8192))


def test_layers_left_to_fit_hold_what_the_gpus_hold() -> None:
    auto = size("RTX 4090", context=8192, options={"ngl": "auto"})
    whole = size("RTX 4090", context=8192)
    assert auto.capacity is not None
    assert whole.capacity is not None
    assert 1 < auto.capacity.requests <= whole.capacity.requests


@pytest.mark.parametrize(
    ("engine", "options", "advised"),
    [
        ("llama.cpp", {"parallel": 2, "n_ctx": 8192}, {"parallel": 3, "n_ctx": 12_288}),
        ("llama.cpp", {"n_seq_max": 2}, {"n_seq_max": 3}),
        ("ollama", {}, {"num_parallel": 3}),
    ],
)
def test_slots_that_run_out_are_advised(
    engine: str, options: dict[str, Any], advised: dict[str, Any]
) -> None:
    plan = size("RTX 4090", context=4096, concurrency=3, engine=engine, options=options)
    assert plan.verdict == "does_not_fit"
    change = plan.advice[0].change
    assert change == {"engine_options": advised}
    more = size(
        "RTX 4090", context=4096, concurrency=3, engine=engine, options={**options, **advised}
    )
    assert more.verdict == "fits"


def test_fewer_tokens_are_not_shown_as_a_gain() -> None:
    """Shorter slots with windows hold more requests in fewer cells."""
    plan = size("RTX 3060", "google/gemma-3-12b-it", context=8192, concurrency=9)
    (shorter,) = [advice for advice in plan.advice if "context" in advice.change]
    assert shorter.gain.requests > 0 > shorter.gain.tokens
    text = text_report(plan, explain=False, width=100, color=False, ascii_only=True)
    assert f"+{shorter.gain.requests} requests" in text
    assert f"{shorter.gain.tokens:,}" not in text
    assert f"+{shorter.gain.requests} / –" in markdown_report(plan, explain=False)
