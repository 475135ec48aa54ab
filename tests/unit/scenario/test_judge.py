"""Expectations against plans: what can't be computed never passes."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvplan.api import size
from kvplan.check_result import Assertion, Place
from kvplan.plan import Plan
from kvplan.scenario.facts import Facts
from kvplan.scenario.judge import judge
from kvplan.scenario.schema import Prices
from kvplan.scenario.workload import Workload
from tests.scenario_files import LLAMA

HERE, THERE = Place(file="f", line=1), Place(file="f", line=7)


@cache
def plan(engine: str = "vllm==0.33.0", tp: int = 1) -> Plan:
    return size(LLAMA, "H100", engine=engine, tp=tp, context=8192, concurrency=10, offline=True)


def judged(text: str, found: Plan | None = None, currency: str = "USD") -> Assertion:
    facts = Facts(found or plan(), Workload(), Prices(gpu_hour=2.0, currency=currency))
    return judge(facts, [(text, THERE)], HERE)[-1]


def requests() -> int:
    capacity = plan().capacity
    assert capacity is not None
    return capacity.requests


@given(st.integers(0, 10_000), st.sampled_from((">=", "<=", ">", "<", "==", "!=")))
def test_a_comparison_is_what_python_makes_of_it(limit: int, operator: str) -> None:
    expected = eval(f"{requests()} {operator} {limit}")  # noqa: S307 - two numbers
    assert judged(f"requests {operator} {limit}").status == ("holds" if expected else "fails")


def test_a_failure_says_value_limit_and_place() -> None:
    found = judged("requests >= 5,000")
    assert found.message == f"requests is {requests()}, and should be at least 5,000."
    assert (found.value, found.limit, found.place) == (str(requests()), "5,000", THERE)


def test_a_name_on_the_right_is_looked_up() -> None:
    found = judged("requests >= concurrency")
    assert (found.status, found.limit) == ("holds", "concurrency (10)")


@pytest.mark.parametrize(
    "text",
    [
        "overload_risk <= 100%",
        "overload_risk >= 0%",
        "cost_per_request >= 0",
        "requests_with_prefixes >= 0",
        "model.revision != x",
        "cost_per_hour <= 100 EUR",
        "cost_per_hour >= cost_per_request",
        "engine.options.max_num_seqs == fp8",
        "engine.options.kv_cache_dtype >= 3",
        "engine.options.enforce_eager > false",
    ],
)
def test_what_cannot_be_computed_or_compared_is_unknown_either_way(text: str) -> None:
    found = judged(text)
    assert found.status == "unknown"
    assert found.message.startswith(text)
    told = text.startswith(("engine", "cost_per_hour"))
    assert (found.value is not None) == told


def test_options_are_compared_by_what_they_are() -> None:
    assert judged("engine.options.enforce_eager == false").status == "holds"
    assert judged("engine.options.gpu_memory_utilization <= 0.92").status == "holds"
    assert judged("engine.options.kv_cache_dtype != fp8").status == "holds"


def test_fits_is_expected_unless_something_is_said_of_the_verdict() -> None:
    facts = Facts(plan(), Workload(), None)
    (implied,) = judge(facts, [], HERE)
    assert (implied.text, implied.status, implied.place) == ("verdict == fits", "holds", HERE)
    (said,) = judge(facts, [("verdict != refused", THERE)], HERE)
    assert said.text == "verdict != refused"


def test_a_refused_plan_has_no_capacity_to_pass_with() -> None:
    refused = plan(tp=3)
    assert refused.verdict == "refused"
    for text in ("requests >= 0", "headroom <= 100%", "kv.budget_bytes >= 0", "tokens >= 0"):
        assert judged(text, refused).status == "unknown"
    assert judged("verdict == refused", refused).status == "holds"
