"""The risk by the number of requests at once."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from kvplan.asked import asked_of
from kvplan.exporting import book_of
from kvplan.plan_book import RealTraffic
from kvplan.planning.traffic.answer import Question
from kvplan.planning.traffic.traffic import Demand, Service, Traffic
from kvplan.units import MAX_TOKENS
from kvplan.workloads.wording import parse_lengths

SERVICE = Service(decode_tokens_per_s=30.0, prefill_tokens_per_s=None)


def question(demand: Demand | None) -> Question:
    pairs = parse_lengths("p50=1k,p95=4k/300", limit=MAX_TOKENS).lengths.pairs()
    return Question(Traffic(pairs), "lengths", 0.001, SERVICE, demand)


def real(demand: Demand | None, dp: int = 1) -> RealTraffic:
    asked = asked_of(
        "L40S",
        engine="vllm",
        sizes={"tp": 1, "pp": 1, "dp": dp, "dcp": 1},
        load=(16384, None),
        words={"weights": "auto", "kv_dtype": "auto", "dtype": "auto"},
        kv_budget=None,
        options=None,
        images=(0, None, None),
    )
    found = book_of("Qwen/Qwen3-8B", asked, traffic=question(demand), offline=True).traffic
    assert found is not None
    return found


@pytest.mark.parametrize("demand", [None, Demand(rate_per_s=2.0), Demand(None, users=50)])
def test_the_risk_rises_within_its_range(demand: Demand | None) -> None:
    curve = real(demand).curve
    assert len(curve) > 10
    assert curve[0].risk < 2e-5
    assert curve[-1].risk > 0.9
    for one, next_one in pairwise(curve):
        assert one.requests < next_one.requests
        assert one.risk <= next_one.risk + 1e-9
    for point in curve:
        assert point.least is not None
        assert point.most is not None
        assert point.least - 1e-9 <= point.risk <= point.most + 1e-9


def test_where_it_crosses_the_chosen_risk_is_what_is_held() -> None:
    found = real(None)
    held = found.plan.held.requests
    assert all((point.risk <= 0.001) == (point.requests <= held) for point in found.curve)


def test_arrivals_are_judged_by_their_mean() -> None:
    found = real(Demand(rate_per_s=2.0))
    most = found.most_a_replica
    assert most is not None
    below = [point for point in found.curve if point.requests < 0.99 * most]
    above = [point for point in found.curve if point.requests > 1.01 * most]
    assert all(point.risk <= 0.001 for point in below)
    assert all(point.risk > 0.001 for point in above)


def test_replicas_multiply_the_requests() -> None:
    one, three = real(Demand(rate_per_s=2.0)), real(Demand(rate_per_s=2.0), dp=3)
    assert [point.requests * 3 for point in one.curve] == pytest.approx(
        [point.requests for point in three.curve]
    )
    assert replace(one, curve=()).most_a_replica == pytest.approx(three.most_a_replica, rel=1e-3)
