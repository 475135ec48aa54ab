"""Whole plans, read back from their JSON: it computes, sums and says what it should."""

from __future__ import annotations

import json
from typing import Any

import pytest

import kvplan
from kvplan.formula import compile_formula
from kvplan.ledger import SECTIONS

LLAMA_8B, LLAMA_70B = "meta-llama/Llama-3.1-8B-Instruct", "meta-llama/Llama-3.1-70B-Instruct"

CASES: dict[str, dict[str, Any]] = {
    "fits": {"model": LLAMA_8B, "gpu": "H100-SXM-80GB", "context": 8192, "concurrency": 4},
    "not judged": {"model": LLAMA_8B, "gpu": "L40S-48GB", "context": 8192},
    "too many requests": {
        "model": LLAMA_70B, "gpu": "H100-SXM-80GB", "tp": 4, "context": 32768, "concurrency": 50,
    },
    "weights alone are too large": {"model": LLAMA_70B, "gpu": "L4-24GB", "context": 4096},
    "stages": {"model": LLAMA_70B, "gpu": "A100-SXM-80GB", "tp": 2, "pp": 2, "context": 8192},
    "fp8 cache": {"model": LLAMA_8B, "gpu": "L40S-48GB", "kv_dtype": "fp8", "context": 8192},
    "longest context": {"model": LLAMA_8B, "gpu": "L4-24GB", "context": "auto"},
    "an older engine": {"model": LLAMA_8B, "gpu": "H100", "engine": "vllm==0.10.0"},
    "bare memory": {"model": LLAMA_8B, "gpu": "custom:48GiB", "context": 8192},
    "given cache": {"model": LLAMA_8B, "gpu": "H100", "kv_budget": 2**34, "context": 8192},
    "refused": {"model": LLAMA_8B, "gpu": "H100", "tp": 3, "context": 8192},
}  # fmt: skip


@pytest.fixture(params=CASES, scope="module")
def plan(request: pytest.FixtureRequest) -> kvplan.Plan:
    return kvplan.size(**CASES[request.param], offline=True)


@pytest.fixture(scope="module")
def stated(plan: kvplan.Plan) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(plan.model_dump_json())
    return read


def test_it_reads_back_as_the_same_plan(plan: kvplan.Plan, stated: dict[str, Any]) -> None:
    assert kvplan.Plan.model_validate_json(json.dumps(stated)) == plan
    assert plan.model_dump(mode="json") == stated
    assert stated["schema"] == "kvplan.plan/1"


def test_each_formula_computes_the_bytes_beside_it(stated: dict[str, Any]) -> None:
    for line in stated["ledger"]:
        computed = compile_formula(line["formula"]).evaluate_bytes(line["inputs"])
        assert computed == line["bytes"], line["name"]


def test_each_explained_formula_computes_them_too(plan: kvplan.Plan) -> None:
    for line in plan.ledger:
        assert compile_formula(line.explain()).evaluate_bytes({}) == line.bytes, line.name


def test_each_interval_holds_its_value(stated: dict[str, Any]) -> None:
    for line in stated["ledger"]:
        assert line["low"] <= line["bytes"] <= line["high"], line["name"]
        if line["confidence"] == "exact":
            assert line["low"] == line["high"], line["name"]


def test_the_lines_sum_to_the_memory(stated: dict[str, Any], plan: kvplan.Plan) -> None:
    if plan.verdict == "refused":
        assert stated["ledger"] == []
        return
    whole = sum(line["bytes"] for line in stated["ledger"])
    given = "kv_budget" in {name for line in stated["ledger"] for name in line["inputs"]}
    assert whole == (stated["kv"]["budget_bytes"] if given else stated["gpu"]["total_bytes"])


def test_every_line_has_a_source_and_a_name_of_its_own(stated: dict[str, Any]) -> None:
    names = [line["name"] for line in stated["ledger"]]
    assert len(set(names)) == len(names)
    assert all(line["source"] for line in stated["ledger"])
    assert {line["section"] for line in stated["ledger"]} <= set(SECTIONS)


def test_the_cache_is_its_blocks(stated: dict[str, Any], plan: kvplan.Plan) -> None:
    if plan.verdict == "refused":
        assert stated["kv"] is None
        assert stated["capacity"] is None
        return
    capacity = stated["capacity"]
    assert capacity["blocks"] * capacity["bytes_per_block"] == stated["kv"]["allocated_bytes"]
    if plan.verdict == "fits":
        assert stated["kv"]["allocated_bytes"] <= stated["kv"]["budget_bytes"]
        assert capacity["max_context"] >= stated["workload"]["context"]
        assert capacity["requests"] >= (stated["workload"]["concurrency"] or 1)


def test_memory_is_negative_only_where_it_does_not_fit(plan: kvplan.Plan) -> None:
    # Except that memory outside the budget may be overdrawn: a warning, not a verdict.
    if plan.verdict == "fits":
        short = [line.name for line in plan.ledger if line.bytes < 0]
        assert set(short) <= {"outside_unused"}


def test_the_verdicts_are_as_expected(request: pytest.FixtureRequest, plan: kvplan.Plan) -> None:
    case = request.node.callspec.params["plan"]
    expected = {
        "refused": "refused",
        "too many requests": "does_not_fit",
        "weights alone are too large": "does_not_fit",
    }
    assert plan.verdict == expected.get(case, "fits")
