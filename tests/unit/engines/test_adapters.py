"""LoRA's buffers by hand, from the shapes of a model's matrices."""

from __future__ import annotations

from typing import Any

import pytest
from small_models import SMALL, small_model

from kvplan import api
from kvplan.engines.vllm.adapters import NAME
from kvplan.errors import UsageError
from kvplan.ledger import LedgerLine
from kvplan.plan import Plan

# hidden 128, inner 352, 8 heads of 16, 4 KV heads of 16, vocabulary 1000, 4 layers.
OUT_AND_IN = (128 + 128) + 2 * (64 + 128) + (128 + 128) + 2 * (352 + 128) + (128 + 352)
VOCABULARY = 2 * (1000 + 128)


def planned(name: str = "GQA", version: str = "0.33.0", tp: int = 1, **options: Any) -> Plan:
    asked = {"max_num_batched_tokens": 512, "max_num_seqs": 4, **options}
    return api.size(
        small_model(name),
        "custom:8GiB",
        engine=f"vllm=={version}",
        tp=tp,
        context=64,
        engine_options=asked,
        advice=False,
    )


def line(plan: Plan, name: str = NAME) -> LedgerLine | None:
    return next((each for each in plan.ledger if each.name == name), None)


def size(plan: Plan) -> int:
    found = line(plan)
    assert found is not None
    return found.bytes


def test_without_adapters_nothing_is_held() -> None:
    assert line(planned()) is None
    assert line(planned(enable_lora=False, max_loras=4)) is None


def test_every_matrix_has_room_for_every_adapter() -> None:
    """Rank × in and out × rank, in 16 bits; the embedding and the head too in Llama's class."""
    plan = planned(enable_lora=True, max_loras=3, max_lora_rank=8)
    assert size(plan) == 3 * 8 * (4 * OUT_AND_IN + VOCABULARY) * 2


def test_what_is_left_out_is_filled_in_and_named() -> None:
    plan = planned(enable_lora=True)
    assert size(plan) == 1 * 16 * (4 * OUT_AND_IN + VOCABULARY) * 2
    assert {"max_loras", "max_lora_rank"} <= set(plan.engine.assumed)
    assert plan.engine.options["max_lora_rank"] == 16


def test_a_rank_holds_its_part_and_the_vocabularys_whole() -> None:
    """Columns are split by their output, rows by their input; the other side stays whole."""
    half = (64 + 128) + 2 * (32 + 128) + (128 + 64) + 2 * (176 + 128) + (128 + 176)
    plan = planned(tp=2, enable_lora=True, max_lora_rank=8)
    assert size(plan) == 8 * (4 * half + VOCABULARY) * 2


def test_experts_have_room_since_0_11_2() -> None:
    """Eight experts of 96 in four layers, and a router whose adapters all releases have."""
    grown = size(planned("MoE", "0.11.2", enable_lora=True)) - size(
        planned("MoE", "0.11.0", enable_lora=True)
    )
    assert grown == 16 * 4 * 8 * (3 * (96 + 128)) * 2


@pytest.mark.parametrize(("version", "factor"), [("0.11.0", 1), ("0.11.2", 2), ("0.33.0", 2)])
def test_graphs_are_captured_with_and_without(version: str, factor: int) -> None:
    counts = []
    for on in (False, True):
        graphs = line(planned(version=version, enable_lora=on), "cuda_graphs")
        assert graphs is not None
        counts.append(graphs.inputs["graphs"])
    assert counts[1] == factor * counts[0]


def test_applying_them_takes_a_product_a_token() -> None:
    """Three slices of float32, of the rank, while a layer is computed."""
    options = {"max_num_batched_tokens": 4096, "enable_lora": True, "max_lora_rank": 256}
    without, peak = (
        line(planned(**each), "activation_peak")
        for each in ({"max_num_batched_tokens": 4096}, options)
    )
    assert peak is not None
    assert without is not None
    assert peak.bytes - without.bytes == 4096 * 3 * 256 * 4


@pytest.mark.parametrize("name", SMALL)
def test_the_ledger_still_adds_up(name: str) -> None:
    plan = planned(name, enable_lora=True, max_lora_rank=64)
    assert sum(each.bytes for each in plan.ledger) == plan.gpu.total_bytes


@pytest.mark.parametrize("rank", [2, 24, 1024])
def test_ranks_are_those_that_vllm_takes(rank: int) -> None:
    with pytest.raises(UsageError, match="max_lora_rank is one of 1, 8, 16"):
        planned(enable_lora=True, max_lora_rank=rank)


def test_sizes_of_adapters_that_are_off_change_nothing() -> None:
    plan = planned(max_loras=4)
    told = [reason.message for reason in plan.reasons if reason.code == "option_not_sized"]
    assert told == ["No byte of this plan depends on max_loras."]
    assert [each.bytes for each in plan.ledger] == [each.bytes for each in planned().ledger]
