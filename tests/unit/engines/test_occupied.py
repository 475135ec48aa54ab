"""Cards that other programs use: what each engine has left of them, and what it says of that."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from real_models import device, real

import kvplan
from kvplan.engines import occupied
from kvplan.engines.base import Setup
from kvplan.formula import compile_formula
from kvplan.hardware import GpuSpec
from kvplan.ledger import LedgerLine, total
from kvplan.plan import Parallelism, Plan

GIB = 2**30
MODEL = "meta-llama/Llama-3.1-8B-Instruct"
ENGINES = ("sglang", "tensorrt-llm", "transformers", "llama.cpp", "ollama")
GGUF = {"llama.cpp": {"weights": "gguf:Q4_K_M"}, "ollama": {"weights": "gguf:Q4_K_M"}}
# SGLang's default fraction depends on the card; a fixed one makes sums by hand possible.
OPTIONS: dict[str, dict[str, Any]] = {"sglang": {"mem_fraction_static": 0.75}}


def card(gib: int, *in_use: int) -> GpuSpec:
    """A card of this machine, with the GiB that others hold of each like it."""
    return device(gib).model_copy(update={"in_use": tuple(held * GIB for held in in_use)})


def size(engine: str, gpu: GpuSpec, **more: Any) -> Plan:
    asked: dict[str, Any] = {"context": 8192, "offline": True, "advice": False}
    asked |= {"engine_options": OPTIONS.get(engine, {})} | GGUF.get(engine, {}) | more
    return kvplan.size(MODEL, gpu, engine=engine, **asked)


def others(plan: Plan) -> LedgerLine | None:
    return next((line for line in plan.ledger if line.name == occupied.NAME), None)


def in_use(plan: Plan) -> str | None:
    return next((r.message for r in plan.reasons if r.code == "memory_in_use"), None)


def budget(plan: Plan) -> int:
    assert plan.kv is not None
    return plan.kv.budget_bytes


def requests(plan: Plan) -> int:
    assert plan.capacity is not None
    return plan.capacity.requests


@pytest.mark.parametrize(
    ("engine", "section", "fewer"),
    [
        ("sglang", "outside", 15 * GIB),  # 0.75 of what is free before loading
        ("tensorrt-llm", "budget", 18 * GIB),  # 0.9 of what the peak leaves
        ("transformers", "outside", 20 * GIB),
        ("llama.cpp", "outside", 20 * GIB),
        ("ollama", "outside", 20 * GIB),
    ],
)
def test_the_cache_loses_what_the_engine_takes_of_it(engine: str, section: str, fewer: int) -> None:
    idle, busy = size(engine, card(80, 0)), size(engine, card(80, 20))
    assert abs(budget(idle) - budget(busy) - fewer) <= 1  # one rounding
    line = others(busy)
    assert line is not None
    assert (line.bytes, line.low, line.high, line.section) == (20 * GIB,) * 3 + (section,)
    assert line.source == occupied.SOURCE
    assert others(idle) is None
    assert in_use(busy) is None
    assert total(busy.ledger) == busy.gpu.total_bytes
    if engine != "ollama":  # which serves as many as it is told
        assert requests(busy) < requests(idle)


@pytest.mark.parametrize("engine", ENGINES)
def test_the_range_of_the_budget_moves_with_it(engine: str) -> None:
    kv = size(engine, card(80, 20)).kv
    assert kv is not None
    assert kv.budget_low is not None
    assert kv.budget_high is not None
    assert kv.budget_low <= kv.budget_bytes <= kv.budget_high
    assert kv.budget_high < budget(size(engine, card(80, 0)))


@pytest.mark.parametrize("engine", ENGINES)
def test_a_plan_that_an_idle_card_would_hold_names_them(engine: str) -> None:
    # Ollama would move layers to the host.
    options = {"num_gpu": 99} if engine == "ollama" else OPTIONS.get(engine, {})
    plan = size(engine, card(24, 22), engine_options=options)
    assert plan.verdict == "does_not_fit"
    message = in_use(plan)
    assert message is not None
    assert message.startswith("Other programs hold 22.00 GiB of ")
    assert total(plan.ledger) == plan.gpu.total_bytes


@pytest.mark.parametrize("engine", ENGINES)
def test_a_plan_that_no_card_would_hold_does_not_blame_them(engine: str) -> None:
    plan = size(engine, card(24, 22), concurrency=5000)
    assert plan.verdict == "does_not_fit"
    assert in_use(plan) is None


@pytest.mark.parametrize("engine", ["sglang", "tensorrt-llm", "transformers", "llama.cpp"])
def test_too_few_requests_are_blamed_too(engine: str) -> None:
    held = requests(size(engine, card(80, 0)))
    options = {"max_batch_size": 4096} if engine == "tensorrt-llm" else OPTIONS.get(engine, {})
    plan = size(engine, card(80, 20), concurrency=held, engine_options=options)
    assert plan.verdict == "does_not_fit"
    assert in_use(plan) == (
        f"Other programs hold 20.00 GiB of "
        f"{'GPU0 (' + plan.gpu.id + ')' if engine == 'llama.cpp' else 'the GPU'} now. "
        "Without them it would fit."
    )


@pytest.mark.parametrize("engine", ["sglang", "tensorrt-llm", "transformers"])
def test_bytes_that_were_given_are_not_reduced(engine: str) -> None:
    plan = size(engine, card(80, 79), kv_budget=8 * GIB)
    assert (budget(plan), others(plan), in_use(plan)) == (8 * GIB, None, None)
    short = size(engine, card(80, 79), kv_budget=8 * GIB, concurrency=5000)
    assert in_use(short) is None


@pytest.mark.parametrize("engine", ["tensorrt-llm", "transformers"])
def test_the_fullest_of_the_cards_that_are_taken_counts(engine: str) -> None:
    def held(gpu: GpuSpec, **more: Any) -> int:
        line = others(size(engine, gpu, **more))
        return line.bytes if line else 0

    assert held(card(80, 0, 30, 40)) == 0
    assert held(card(80, 0, 30, 40), pp=2) == 30 * GIB
    assert held(card(80, 0, 30, 40), dp=3) == 40 * GIB
    assert held(card(80, 30), pp=2) == 30 * GIB  # more cards than there are


def test_sglang_starts_no_ranks_that_differ_by_more_than_a_tenth() -> None:
    # An idle rank has some 77 GiB free before it loads: 7 GiB are less than a tenth, 8 are more.
    even = size("sglang", card(80, 0, 7), tp=2)
    assert even.verdict == "fits"
    line = others(even)
    assert line is not None
    assert line.bytes == 7 * GIB
    uneven = size("sglang", card(80, 0, 8), tp=2)
    assert uneven.verdict == "does_not_fit"
    assert "less than 0.9 of the free memory of another" in (in_use(uneven) or "")
    assert size("sglang", card(80, 8, 8), tp=2).verdict == "fits"
    assert size("sglang", card(80, 0, 8), pp=2).verdict == "fits"
    # Replicas are started apart; one card more than there are is idle.
    assert size("sglang", card(80, 0, 0, 8, 8), tp=2, dp=2).verdict == "fits"
    assert size("sglang", card(80, 20), tp=2).verdict == "does_not_fit"


def test_llamacpp_takes_of_each_card_what_is_free() -> None:
    plan = size("llama.cpp", card(24, 0, 12), pp=2)
    first, second, host = plan.devices
    assert (first.others_bytes, second.others_bytes, host.others_bytes) == (0, 12 * GIB, 0)
    # 23.76 and 11.76 GiB are free: two thirds of the 33 layers go to the first.
    assert (first.layers, second.layers) == (23, 9)
    assert second.total_bytes is not None
    assert second.left_bytes == second.total_bytes - 12 * GIB - second.process_bytes - (
        second.weights_bytes + second.cache_bytes + second.compute_bytes
    )
    shared = size("llama.cpp", card(24, 0, 12), engine_options={"tensor_split": "1,1"})
    assert [part.others_bytes for part in shared.devices] == [0, 12 * GIB, 0]


def test_llamacpp_replicas_stand_on_the_cards_behind_each_other() -> None:
    plan = size("llama.cpp", card(24, 1, 2, 3, 4), pp=2, dp=2)
    assert [part.others_bytes for part in plan.devices] == [3 * GIB, 4 * GIB, 0]


@pytest.mark.parametrize("engine", ["llama.cpp", "ollama"])
def test_llamacpp_moves_layers_to_the_host_where_a_card_is_full(engine: str) -> None:
    layers = {"llama.cpp": "n_gpu_layers", "ollama": "num_gpu"}[engine]
    auto = {layers: "auto" if engine == "llama.cpp" else -1}
    partly, full = (
        size(engine, card(24, held), engine_options=auto, context=4096) for held in (20, 24)
    )
    # On a full card not even the driver's context has room.
    assert (partly.verdict, full.verdict) == ("fits", "does_not_fit")
    assert in_use(full) is not None
    assert 0 < partly.devices[0].layers < 32
    assert full.devices[0].layers == 0


def test_ollama_takes_a_batch_by_what_is_free() -> None:
    idle, busy = (
        size("ollama", card(24, held), context=65_536).engine.options["num_batch"]
        for held in (0, 20)
    )
    assert (idle, busy) == (2048, 512)


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(ENGINES[:4]),
    st.integers(16, 80),
    st.integers(0, 80),
    st.integers(1, 6),
)
def test_laws(engine: str, gib: int, held: int, concurrency: int) -> None:
    """Lines sum to the card, none is negative in a fit, and more in use never holds more."""
    plan = size(engine, card(gib, held), concurrency=concurrency)
    assert total(plan.ledger) == plan.gpu.total_bytes
    for line in plan.ledger:
        assert compile_formula(line.formula).evaluate_bytes(line.inputs) == line.bytes
        assert line.bytes >= 0 or plan.verdict == "does_not_fit"
    more = size(engine, card(gib, held + 1), concurrency=concurrency)
    assert requests(more) <= requests(plan)


def test_the_fullest_card_is_one_of_those_that_are_taken() -> None:
    gpu = card(80, 1, 5, 3, 9)
    spreads = (Parallelism(), Parallelism(tp=2), Parallelism(dp=3), Parallelism(tp=2, pp=2))
    model = real("llama-3.1-8b")
    held = [occupied.fullest_card(Setup(model, gpu, parallelism=spread)) for spread in spreads]
    assert held == [1 * GIB, 5 * GIB, 5 * GIB, 9 * GIB]
    assert occupied.fullest_card(Setup(model, device(80))) == 0
