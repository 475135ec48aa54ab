"""Prefixes behind one another: what is held once, what each request holds, by hand."""

from __future__ import annotations

from functools import cache

import pytest

from kvplan.api import prepare, read_spec, size
from kvplan.engines.base import Prepared
from kvplan.plan import Plan
from kvplan.scenario.chain import Link, as_rule, links
from kvplan.scenario.held import with_prefixes
from kvplan.scenario.workload import Prefix, Workload
from kvplan.sources.gpus import find_gpus
from tests.scenario_files import LLAMA

(H100,) = find_gpus("H100")
HYBRIDS = ("openai/gpt-oss-20b", "google/gemma-3-27b-it", "Qwen/Qwen3-Next-80B-A3B-Instruct")
SYSTEM = Prefix(name="system", tokens=1600, scope="global")
TENANT = Prefix(name="tenant", tokens=800, tenants=20)


@cache
def prepared(model: str = LLAMA) -> Prepared:
    return prepare(read_spec(model, offline=True), H100, engine="vllm==0.33.0", context=8192)


@cache
def plan(model: str = LLAMA) -> Plan:
    return size(model, "H100", engine="vllm==0.33.0", context=8192, offline=True)


def held(*prefixes: Prefix, model: str = LLAMA) -> int:
    found = with_prefixes(prepared(model), plan(model), Workload(prefixes=prefixes))
    assert isinstance(found, int)
    return found


def blocks() -> int:
    return prepared().pools(8192).pools[0].count


def test_the_chain_is_as_rare_as_its_rarest_part() -> None:
    half = TENANT.model_copy(update={"share": 0.5})
    assert list(links([SYSTEM, half])) == [Link(1600, 1, 1.0), Link(2400, 20, 0.5)]
    rule = as_rule([SYSTEM, half])
    assert rule is not None
    assert (rule.tokens, rule.copies, rule.share) == (2400, 20, 0.5)
    assert as_rule([]) is None


def test_one_prefix_by_hand() -> None:
    # 8,192 tokens are 512 blocks of 16, of which 1,600 tokens are 100.
    assert held(SYSTEM) == (blocks() - 100) // 412
    assert held(TENANT) == (blocks() - 20 * 50) // 462


def test_two_prefixes_by_hand() -> None:
    # Once the first, and behind it twenty times the second.
    assert held(SYSTEM, TENANT) == (blocks() - 100 - 20 * 50) // 362


def test_requests_without_the_prefix_hold_all_of_themselves() -> None:
    half = SYSTEM.model_copy(update={"share": 0.5})
    # On average a request saves 50 blocks.
    assert held(half) == int((blocks() - 100) / (512 - 50))


@pytest.mark.parametrize("model", HYBRIDS)
def test_models_with_several_kinds_of_layers(model: str) -> None:
    capacity = plan(model).capacity
    assert capacity is not None
    assert len(capacity.groups) > 1
    # A prefix shorter than a block is shared by nobody: the plan's own requests.
    assert held(Prefix(name="short", tokens=1), model=model) == capacity.requests
    assert held(Prefix(name="long", tokens=6400), model=model) >= capacity.requests


def test_a_prefix_that_fills_the_request_has_no_figure() -> None:
    found = with_prefixes(prepared(), plan(), Workload(prefixes=(Prefix(name="p", tokens=8192),)))
    assert found == "prefixes of 8,192 tokens fill the whole request"
