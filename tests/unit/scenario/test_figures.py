"""Names of expectations against a real plan: every one has a value of its kind."""

from __future__ import annotations

from functools import cache

import pytest

from kvplan.api import prepare, read_spec, size
from kvplan.engines.base import Prepared
from kvplan.plan import Plan
from kvplan.scenario import figures
from kvplan.scenario.facts import Facts, Missing
from kvplan.scenario.schema import Prices
from kvplan.scenario.values import value_of
from kvplan.scenario.workload import Prefix, Sessions, Workload
from kvplan.sources.gpus import find_gpus
from tests.scenario_files import LLAMA

(H100,) = find_gpus("H100")


@cache
def plan(concurrency: int | None = 10, engine: str = "vllm==0.33.0") -> Plan:
    return size(LLAMA, "H100", engine=engine, context=8192, concurrency=concurrency, offline=True)


def facts(workload: Workload | None = None, *, priced: bool = True, **given: int | None) -> Facts:
    prices = Prices(gpu_hour=2.0, currency="EUR") if priced else None
    return Facts(
        plan(given.get("concurrency", 10)),
        workload or Workload(),
        prices,
        prepared=lambda: prepared(LLAMA),
    )


@cache
def prepared(model: str) -> Prepared:
    spec = read_spec(model, offline=True)
    return prepare(spec, H100, engine="vllm==0.33.0", context=8192)


def of_plan(name: str) -> bool:
    return not figures.SHORT.get(name, name).startswith(figures.TRAFFIC)


@pytest.mark.parametrize("name", sorted(filter(of_plan, {*figures.fields(), *figures.SHORT})))
def test_every_field_of_the_plan_has_a_value_of_its_kind(name: str) -> None:
    found = figures.of_plan(plan(), name)
    if found is None:
        assert name in ("model.revision", "kv.storage_bytes")
        return
    words = figures.kind_of(name) == "text"
    assert isinstance(found, str) == words


def test_short_names_are_the_fields_they_stand_for() -> None:
    for short, path in filter(lambda row: of_plan(row[0]), figures.SHORT.items()):
        assert figures.of_plan(plan(), short) == figures.of_plan(plan(), path)


def test_ledger_lines_are_summed_by_their_first_words() -> None:
    found = plan()
    weights = sum(line.bytes for line in found.ledger if line.name.startswith("weights."))
    assert figures.of_plan(found, "ledger.weights") == weights > 0
    assert figures.of_plan(found, "ledger.weight") is None
    assert value_of(facts(), "weights_bytes") == weights


def test_headroom_is_what_the_load_leaves_of_the_requests_held() -> None:
    found = plan()
    assert found.capacity is not None
    held = found.capacity.requests
    assert value_of(facts(), "headroom") == pytest.approx((held - 10) / held)
    assert value_of(facts(concurrency=None), "headroom") == Missing(
        "neither concurrency nor a rate or users are stated"
    )


def test_uncertainty_is_the_way_from_the_value_to_its_lower_end() -> None:
    capacity = plan().capacity
    assert capacity is not None
    assert capacity.tokens_low is not None
    expected = (capacity.tokens - capacity.tokens_low) / capacity.tokens
    assert value_of(facts(), "uncertainty") == pytest.approx(expected)
    assert 0 < expected < 1


def test_money_by_hand() -> None:
    busy = Workload(seconds_per_request=36.0)
    assert value_of(facts(), "cost_per_hour") == 2.0
    # Ten at once, 36 seconds each: 1,000 requests an hour for 2 EUR.
    assert value_of(facts(busy), "cost_per_request") == pytest.approx(0.002)


@pytest.mark.parametrize(
    ("name", "given", "why"),
    [
        ("cost_per_hour", facts(priced=False), "no price is stated"),
        ("cost_per_request", facts(), "workload.seconds_per_request is not stated"),
        ("requests_with_prefixes", facts(), "no prefix is stated"),
        ("requests_with_sessions", facts(), "does not state count and tokens"),
        ("sessions_kept", facts(), "does not state tokens"),
        ("overload_risk", facts(), "it takes lengths, a trace or a rate"),
        ("replicas", facts(), "it takes lengths, a trace or a rate"),
        ("held_requests", facts(), "it takes lengths, a trace or a rate"),
        ("traffic.load.risk", facts(), "it takes lengths, a trace or a rate"),
        ("concurrency", facts(concurrency=None), "no concurrency is stated"),
        ("engine.options.no_such", facts(), "does not state engine.options.no_such"),
        ("model.revision", facts(), "does not state model.revision"),
    ],
)
def test_what_cannot_be_computed_says_why(name: str, given: Facts, why: str) -> None:
    found = value_of(given, name)
    assert isinstance(found, Missing)
    assert why in found.why


def test_a_shared_prefix_is_held_once() -> None:
    found = plan()
    assert found.capacity is not None
    (group,) = found.capacity.groups
    prefix = Prefix(name="p", tokens=4096)
    with_prefix = value_of(facts(Workload(prefixes=(prefix,))), "requests_with_prefixes")
    shared = 4096 // group.block_size
    own = group.blocks_per_request - shared
    assert with_prefix == (found.capacity.blocks - 1 - shared) // own > found.capacity.requests


def test_sessions_hold_blocks_beside_requests() -> None:
    """By hand: a request of 8,192 tokens has 512 blocks, a session of 4,096 has 256."""
    blocks = prepared(LLAMA).pools(8192).pools[0].count
    kept = facts(Workload(sessions=Sessions(count=40, tokens=4096)))
    assert value_of(kept, "requests_with_sessions") == (blocks - 40 * 256) // 512
    assert value_of(kept, "sessions_kept") == (blocks - 10 * 512) // 256


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("traffic.prefix.bytes_saved", "bytes"),
        ("traffic.prefix.change_bytes", "bytes"),
        ("traffic.total.mean", "tokens"),
        ("traffic.total.p95", "tokens"),
    ],
)
def test_a_field_has_its_unit(name: str, kind: str) -> None:
    assert figures.kind_of(name) == kind
