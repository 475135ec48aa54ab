"""Bounds on time by hand, and what limits and prices make of a search."""

from __future__ import annotations

from typing import Any

import pytest
from real_models import device, full, toy

import kvplan
from kvplan.errors import UsageError
from kvplan.fit_prices import Offer, PriceList
from kvplan.fit_result import FitPlan, FitResult
from kvplan.hardware import Fact, GpuSpec
from kvplan.planning.fit.buying import market_of

GPU = device(20).model_copy(
    update={
        "memory_bandwidth_gb_s": Fact(value=1000, source="a test"),
        "tflops_bf16": Fact(value=100, source="a test"),
    }
)
# Eight layers with 2 MiB of weights, and 4 KiB of keys and values a token each.
MODEL = toy(*[full(8)] * 8)
WEIGHTS, TOKEN, PARAMETERS = 8 * 2 * 2**20, 8 * 4096, 8 * 2**20


def searched(gpu: GpuSpec = GPU, **asked: Any) -> FitResult:
    arguments: dict[str, Any] = {
        "context": 4096, "concurrency": 10, "gpus": [gpu], "weights": ["auto"],
        "kv_dtypes": ["auto"], "tp": [1], "pp": [1], "max_gpus": 8,
    }  # fmt: skip
    return kvplan.fit(MODEL, **(arguments | asked))


def only(found: FitResult) -> FitPlan:
    (plan,) = found.plans
    return plan


def test_a_token_waits_for_weights_and_cache_to_be_read() -> None:
    speed = only(searched()).speed
    assert speed is not None
    moved = WEIGHTS + 10 * 4096 * TOKEN
    assert speed.tpot_s == pytest.approx(moved / (1000e9 * 0.8))
    assert speed.tokens_per_s == pytest.approx(10 / speed.tpot_s)
    assert speed.limited_by == "bandwidth"
    assert speed.batch == 10


def test_a_prompt_waits_for_arithmetic() -> None:
    speed = only(searched(prompt=2048)).speed
    assert speed is not None
    # Two operations a weight; two a query head and element of keys and of values attended to.
    attended = 2048 * 2049 // 2
    flops = 2048 * 2 * PARAMETERS + attended * 8 * 2 * 32 * 256
    assert speed.ttft_s == pytest.approx(flops / (100e12 * 0.5))


def test_stages_wait_for_one_another_and_ranks_don_t() -> None:
    one, two = (only(searched(tp=[tp], pp=[1])).speed for tp in (1, 2))
    stages = only(searched(tp=[1], pp=[2])).speed
    assert one is not None
    assert two is not None
    assert stages is not None
    assert two.tpot_s == pytest.approx(one.tpot_s / 2)
    # Half of the batch, through all layers.
    assert stages.tpot_s == pytest.approx((WEIGHTS + 5 * 4096 * TOKEN) / 800e9)
    assert stages.ttft_s == pytest.approx(one.ttft_s / 2)


def test_shares_of_the_peak_can_be_given() -> None:
    usual, all_of_it = only(searched()).speed, only(searched(bandwidth_share=1.0)).speed
    assert usual is not None
    assert all_of_it is not None
    assert all_of_it.tpot_s == pytest.approx(usual.tpot_s * 0.8)
    with pytest.raises(UsageError, match="bandwidth_share"):
        searched(bandwidth_share=1.5)


def test_a_limit_on_a_token_adds_replicas_or_takes_a_plan_out() -> None:
    usual = only(searched())
    assert usual.parallelism.dp == 1
    assert usual.speed is not None
    # Two replicas have half of the requests each.
    faster = only(searched(tpot_s=usual.speed.tpot_s * 0.6))
    assert faster.parallelism.dp == 2
    out = searched(tpot_s=usual.speed.tpot_s * 0.01)
    assert out.plans == ()
    assert {loser.why for loser in out.losers} == {"misses_slo"}


def test_a_gpu_of_unknown_speed_can_t_be_judged() -> None:
    bare = device(20)
    assert bare.memory_bandwidth_gb_s is None
    assert only(searched(bare)).speed is None
    (loser,) = searched(bare, tpot_s=1.0).losers
    assert loser.why == "misses_slo"
    assert "is not known" in loser.message


def test_what_crawls_is_said_to() -> None:
    slow = GPU.model_copy(update={"memory_bandwidth_gb_s": Fact(value=10, source="a test")})
    assert not any("crawls" in remark for remark in only(searched()).remarks)
    assert any("crawls" in remark for remark in only(searched(slow)).remarks)


def test_whole_machines_are_bought() -> None:
    eight = Offer(name="eight", gpu="X", gpus=8, per_hour=10.0, currency="USD", source="a test")
    single = Offer(name="one", gpu="X", gpus=1, per_hour=2.0, currency="USD", source="a test")
    market = market_of([eight], closed=True, node=None)
    three = market.buy("X", tp=1, groups=3, most=64)
    assert three is not None
    assert (three.count, three.gpus, three.per_hour) == (1, 8, 10.0)
    # Three GPUs are too wide for two groups in eight... two of them fit, a third does not.
    wide = market.buy("X", tp=3, groups=3, most=64)
    assert wide is not None
    assert (wide.count, wide.gpus, wide.per_hour) == (2, 16, 20.0)
    assert market.buy("X", tp=3, groups=3, most=15) is None
    assert market.buy("X", tp=16, groups=1, most=64) is None
    both = market_of([eight, single], closed=True, node=None)
    cheaper = both.buy("X", tp=1, groups=3, most=64)
    assert cheaper is not None
    assert (cheaper.name, cheaper.per_hour) == ("one", 6.0)
    assert market.widest("X") == 8
    assert market.widest("Y") == 0


def price_list(**facts: Any) -> PriceList:
    return PriceList.model_validate(
        {"schema": "kvplan.prices/1", "date": "2026-11-01", "source": "a test", **facts}
    )


def llama(**asked: Any) -> FitResult:
    arguments: dict[str, Any] = {
        "context": 8192, "concurrency": 60, "gpus": "L4,L40S", "tp": [1, 2], "pp": [1],
        "weights": ["auto"], "kv_dtypes": ["auto"], "offline": True,
    }  # fmt: skip
    return kvplan.fit("meta-llama/Llama-3.1-8B-Instruct", **(arguments | asked))


def test_plans_without_a_price_say_so_and_stand_last() -> None:
    found = llama(prices=price_list(gpus={"L4": 0.5}))
    assert found.best is not None
    assert found.best.gpu == "L4-24GB"
    assert found.best.per_hour == found.best.gpus * 0.5
    unpriced = [plan.rank for plan in found.plans if plan.per_hour is None]
    assert unpriced
    assert min(unpriced) > max(plan.rank for plan in found.plans if plan.per_hour is not None)
    assert all("no price" in found.plans[rank - 1].remarks for rank in unpriced)
    without = llama()
    assert [plan.gpus for plan in without.plans] == sorted(plan.gpus for plan in without.plans)


def test_a_budget_takes_out_what_costs_more_or_has_no_price() -> None:
    prices = price_list(gpus={"L4": 0.5})
    dearest = max(plan.per_hour or 0 for plan in llama(prices=prices).plans)
    within = llama(prices=prices, budget_per_hour=dearest - 0.01)
    assert within.plans
    assert all(plan.per_hour and plan.per_hour < dearest for plan in within.plans)
    assert {"over_budget", "no_price"} <= {loser.why for loser in within.losers}


def test_every_loser_is_in_one_group_and_names_who_beat_it() -> None:
    found = llama(gpus="L4,L40S,T4", concurrency=30)
    assert sum(group.count for group in found.groups) == len(found.losers)
    beaten = [loser for loser in found.losers if loser.why == "dominated"]
    assert len(beaten) == len(found.plans) - len(found.frontier)
    for loser in beaten:
        assert loser.beaten_by is not None
        assert found.plans[loser.beaten_by - 1].frontier


@pytest.mark.parametrize(
    "wrong",
    [
        {"gpus": "Z*"},
        {"gpus": []},
        {"concurrency": 0},
        {"context": -1},
        {"budget_per_hour": 0.0},
        {"tpot_s": -1.0},
        {"max_gpus": 0},
        {"weights": ["fp9"]},
        {"engines": ["vlmm"]},
        {"tp": [0]},
        {"instances": "ibm"},
        {"engine_options": {"sglang": {}}},
        {"engine_options": {"vllm": {"max_seqs": 3}}},
    ],
)
def test_wrong_arguments_are_usage_errors(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        llama(**wrong)


def test_rows_are_flat_and_the_result_can_t_be_changed() -> None:
    found = llama()
    rows = found.rows()
    assert len(rows) == len(found.plans)
    assert all(
        isinstance(value, str | int | float | None) for row in rows for value in row.values()
    )
    with pytest.raises(ValueError, match="frozen"):
        found.model = "another"  # type: ignore[misc]
    assert FitResult.model_validate_json(found.model_dump_json(by_alias=True)) == found
