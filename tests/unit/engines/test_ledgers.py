"""The ledger: every line adds up to the device, and each formula gives its bytes."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from real_models import GIB, device, full, real, toy

from kvplan.engines.base import Setup
from kvplan.engines.vllm.calibration import Interval
from kvplan.engines.vllm.coverage import Coverage
from kvplan.engines.vllm.engine import Vllm
from kvplan.engines.vllm.ledgers import Cut, fixed_pool_ledger, full_ledger, given_ledger
from kvplan.engines.vllm.memory import RankMemory
from kvplan.ledger import Draft, LedgerLine
from kvplan.models.spec import ModelSpec
from kvplan.plan import Parallelism, Plan
from kvplan.planning.size import Load, size

FUNCTIONS = {"ceil": math.ceil, "floor": math.floor, "min": min, "max": max}


def computed(formula: str, inputs: Mapping[str, float]) -> float:
    """A formula by Python alone: none of vLLM's divides."""
    assert "/" not in formula
    value: float = eval(formula, {"__builtins__": {}}, FUNCTIONS | dict(inputs))  # noqa: S307
    return value


def draft(name: str, section: str, value: int) -> Draft:
    return Draft(name, section, "size", {"size": value}, source="x", confidence="exact")  # type: ignore[arg-type]


def rank() -> RankMemory:
    """80 GiB, of which 72 are the budget: 20 of weights, 2 of runtime; 1 outside."""
    device_ = Vllm().prepare(Setup(model=toy(full()), gpu=device(80))).device
    return RankMemory(
        device=device_,
        utilization=0.9,
        budget=(draft("weights.mlp", "budget", 20 * GIB), draft("non_torch", "budget", 2 * GIB)),
        outside=(draft("cuda_context", "outside", GIB),),
        requested=72 * GIB,
        available=50 * GIB,
        interval=Interval(low=0.5, high=0.5, n=1),
        coverage=Coverage(factor=1, beyond=()),
    )


CUT = Cut(blocks=49, bytes_per_block=GIB, low=40, high=60)


def by_name(lines: tuple[LedgerLine, ...]) -> dict[str, int]:
    assert len({line.name for line in lines}) == len(lines)
    return {line.name: line.bytes for line in lines}


def test_a_pool_of_what_the_budget_leaves() -> None:
    lines = full_ledger(rank(), CUT)
    assert by_name(lines) == {
        "weights.mlp": 20 * GIB,
        "non_torch": 2 * GIB,
        "kv_cache": 49 * GIB,
        "budget_rest": GIB,
        "cuda_context": GIB,
        "outside_unused": 7 * GIB,
    }
    assert [line.section for line in lines] == ["budget", "budget", "pool", "free", "outside",
                                                "outside"]  # fmt: skip
    formulas = {line.name: line.formula for line in lines}
    share = "ceil(total_bytes * gpu_memory_utilization)"
    assert formulas["budget_rest"] == f"{share} - kv_cache - weights_mlp - non_torch"
    assert formulas["outside_unused"] == f"total_bytes - {share} - cuda_context"
    assert {line.confidence for line in lines if line.section == "free"} == {"derived"}


def test_a_pool_of_given_bytes_beside_everything_else() -> None:
    lines = fixed_pool_ledger(rank(), CUT)
    assert by_name(lines) == {
        "weights.mlp": 20 * GIB,
        "non_torch": 2 * GIB,
        "kv_cache": 49 * GIB,
        "cuda_context": GIB,
        "unused": 8 * GIB,
    }
    unused = lines[-1]
    assert unused.section == "free"
    assert unused.formula == "total_bytes - weights_mlp - non_torch - kv_cache - cuda_context"
    assert unused.confidence == "derived"


def test_a_pool_of_given_bytes_alone() -> None:
    lines = given_ledger(50 * GIB, CUT)
    assert by_name(lines) == {"kv_cache": 49 * GIB, "budget_rest": GIB}
    assert [line.section for line in lines] == ["pool", "free"]
    assert lines[1].formula == "kv_budget - kv_cache"
    assert lines[1].confidence == "exact"


@pytest.mark.parametrize(
    ("low", "high", "confidence"),
    [(40, 60, "calibrated"), (49, 60, "calibrated"), (49, 49, "exact")],
)
def test_a_pool_is_as_sure_as_its_bytes(low: int, high: int, confidence: str) -> None:
    pool = given_ledger(50 * GIB, Cut(blocks=49, bytes_per_block=GIB, low=low, high=high))[0]
    assert (pool.low, pool.bytes, pool.high) == (low * GIB, 49 * GIB, high * GIB)
    assert pool.confidence == confidence
    assert pool.inputs == {"blocks": 49, "bytes_per_block": GIB}


MODELS = ["llama-3.1-8b", "gemma-3-27b", "qwen3-30b-a3b", "deepseek-v2-lite", "gpt-oss-20b"]


@st.composite
def setups(draw: st.DrawFn) -> tuple[Setup, Load]:
    model: ModelSpec = real(draw(st.sampled_from(MODELS)))
    options: dict[str, Any] = draw(
        st.fixed_dictionaries(
            {},
            optional={
                "gpu_memory_utilization": st.floats(0.01, 1.0),
                "enforce_eager": st.booleans(),
                "kv_cache_memory_bytes": st.integers(1, 200 * GIB),
                "num_gpu_blocks_override": st.integers(1, 10**6),
            },
        )
    )
    tp, pp = draw(st.sampled_from([1, 2, 4])), draw(st.sampled_from([1, 2, 3]))
    budget = draw(st.none() | st.integers(1, 200 * GIB))
    context = draw(st.integers(1, 40_000))
    setup = Setup(
        model=model,
        gpu=device(draw(st.floats(8, 200))),
        version=draw(st.sampled_from(["0.9.2", "0.12.0", "0.19.1", "0.33.0"])),
        parallelism=Parallelism(tp=tp, pp=pp),
        kv_dtype=draw(st.sampled_from(["auto", "fp8"])),
        kv_budget=None if budget is None else (budget,),
        options=options,
        context=context,
    )
    return setup, Load(context=context, concurrency=draw(st.none() | st.integers(1, 500)))


@given(setups())
def test_the_laws_of_a_ledger(asked: tuple[Setup, Load]) -> None:
    setup, load = asked
    plan = size(Vllm(), setup, load)
    read = json.loads(plan.model_dump_json())
    lines = read["ledger"]
    for line in lines:
        assert computed(line["formula"], line["inputs"]) == line["bytes"]
        assert line["low"] <= line["bytes"] <= line["high"]
        assert line["confidence"] != "exact" or line["low"] == line["high"]
    whole = read["gpu"]["total_bytes"] if setup.kv_budget is None else setup.kv_budget[0]
    assert sum(line["bytes"] for line in lines) == whole
    if plan.verdict == "fits":
        assert min(line["bytes"] for line in lines) >= 0
    _check_cache(plan)


def _check_cache(plan: Plan) -> None:
    assert plan.kv is not None
    assert plan.capacity is not None
    pool = next(line for line in plan.ledger if line.name == "kv_cache")
    assert pool.bytes == plan.kv.allocated_bytes
    assert pool.bytes == plan.capacity.blocks * plan.capacity.bytes_per_block
    if plan.kv.budget_low is not None and plan.kv.budget_high is not None:
        assert plan.kv.budget_low <= plan.kv.budget_bytes <= plan.kv.budget_high
    low, high = plan.capacity.tokens_low, plan.capacity.tokens_high
    assert (low is None) == (high is None) == (plan.kv.budget_low is None)
    if low is not None and high is not None:
        assert low <= plan.capacity.tokens <= high


@given(setups())
def test_the_budget_is_what_is_spent_and_what_is_left(asked: tuple[Setup, Load]) -> None:
    setup, load = asked
    options = {key: value for key, value in setup.options.items() if key != "kv_cache_memory_bytes"}
    setup = Setup(model=setup.model, gpu=setup.gpu, version=setup.version, options=options,
                  parallelism=setup.parallelism, context=setup.context)  # fmt: skip
    plan = size(Vllm(), setup, load)
    lines = {line.name: line for line in plan.ledger}
    budget = sum(line.bytes for line in plan.ledger if line.section != "outside")
    used = plan.engine.options["gpu_memory_utilization"]
    assert budget == math.ceil(plan.gpu.total_bytes * used)
    assert plan.kv is not None
    assert plan.kv.budget_bytes == lines["kv_cache"].bytes + lines["budget_rest"].bytes
