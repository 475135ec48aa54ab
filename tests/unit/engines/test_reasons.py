"""Why a plan says what it says, and what its reader has to know."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from fixed_calibration import fix_calibration
from real_models import GIB, device, full, real, toy, window

from kvplan.engines.base import Setup
from kvplan.engines.vllm.engine import Vllm
from kvplan.hardware import Fact, GpuSpec
from kvplan.models.spec import ModelSpec
from kvplan.plan import Parallelism, Reason

TWO = toy(full(), full())
HUNDRED_MIB = 100 * 2**20  # 800 blocks of 16 tokens of TWO


@pytest.fixture(autouse=True)
def _fixed_calibration(monkeypatch: pytest.MonkeyPatch) -> None:
    fix_calibration(monkeypatch)


def reasons(
    model: ModelSpec = TWO, *, context: int = 1000, concurrency: int | None = None, **changes: Any
) -> dict[str, Reason]:
    parallel = {key: changes.pop(key) for key in ("tp", "pp", "dp") if key in changes}
    facts: dict[str, Any] = {
        "model": model, "gpu": device(80), "version": "0.33.0", "context": context
    }  # fmt: skip
    setup = Setup(**(facts | {"parallelism": Parallelism(**parallel)} | changes))
    found = Vllm().prepare(setup).answer(context, concurrency).reasons
    assert len({reason.code for reason in found}) == len(found)
    # The newest release is ahead of every measured start; what that says has its own test.
    return {reason.code: reason for reason in found if reason.code != "runtime_not_calibrated"}


@pytest.mark.parametrize(("version", "told"), [("0.30.1", False), ("0.31.0", True)])
def test_a_release_newer_than_every_measured_start_is_pointed_out(
    version: str, *, told: bool
) -> None:
    setup = Setup(model=TWO, gpu=device(80), version=version, context=1000)
    prepared = Vllm().prepare(setup)
    codes = [reason.code for reason in prepared.answer(1000, None).reasons]
    assert ("runtime_not_calibrated" in codes) is told
    given = Vllm().prepare(replace(setup, kv_budget=(HUNDRED_MIB,)))
    assert "runtime_not_calibrated" not in [r.code for r in given.answer(1000, None).reasons]


def test_a_plan_that_fits_for_sure_has_nothing_to_say() -> None:
    assert reasons(kv_budget=(HUNDRED_MIB,)) == {}
    assert reasons(kv_budget=(HUNDRED_MIB,), concurrency=12) == {}
    assert reasons(concurrency=100) == {}


def test_weights_that_leave_nothing() -> None:
    """Of a budget of 73.6 GiB.

    The weights are 131.417 GiB, and sampling, 1,024 × 128,256 × 14 + 8,192 × 8,192 × 4 bytes, takes
    1.962 (a step, 8,192 × 110,592 × 2 bytes, 1.688). The rest, 512 + 384 + 408 MiB, is 1.273.
    """
    found = reasons(real("llama-3.1-70b"))
    assert list(found) == ["no_room_for_cache"]
    reason = found["no_room_for_cache"]
    assert reason.message.startswith("Weights (131.42 GiB) and runtime memory leave no room")
    assert " 61.05 GiB are missing on each GPU." in reason.message
    assert reason.hint is not None


def test_a_request_that_is_too_long() -> None:
    """16 MiB are 128 blocks of 128 KiB, one of them the null block: 127 × 16 tokens."""
    found = reasons(kv_budget=(16 * 2**20,), context=2033, concurrency=99)
    assert list(found) == ["context_too_long"]
    assert found["context_too_long"].message == (
        "One request of 2,033 tokens needs 16.1 MiB of KV cache on each GPU and 16 MiB are there: "
        "vLLM would not start. The longest that fits is 2,032 tokens."
    )
    assert found["context_too_long"].hint == "--max-model-len 2032"


def test_a_release_without_a_null_block_needs_one_block_less() -> None:
    older = reasons(kv_budget=(16 * 2**20,), context=2049, version="0.28.0")
    assert "needs 16.1 MiB of KV cache on each GPU and 16 MiB" in older["context_too_long"].message
    assert "The longest that fits is 2,048 tokens." in older["context_too_long"].message


def test_not_even_one_token() -> None:
    found = reasons(kv_budget=(2**17,), context=100)
    assert "The longest that fits is 0 tokens." in found["context_too_long"].message
    assert (
        found["context_too_long"].hint
        == "More GPUs (--tp), a smaller weight format (--weights fp8), or a larger GPU."
    )


def test_a_budget_of_less_than_a_block_holds_nothing() -> None:
    assert list(reasons(kv_budget=(1,))) == ["context_too_long"]


def test_blocks_that_somebody_set_are_what_there_is() -> None:
    found = reasons(kv_budget=(GIB,), options={"num_gpu_blocks_override": 10}, context=1000)
    assert "and 1.2 MiB are there" in found["context_too_long"].message


def test_more_requests_than_the_cache_holds() -> None:
    found = reasons(kv_budget=(HUNDRED_MIB,), concurrency=13)
    assert list(found) == ["kv_cache_full"]
    assert found["kv_cache_full"].message == (
        "The KV cache holds 12 requests of 1,000 tokens, 13 were asked for."
    )
    assert found["kv_cache_full"].hint is not None


def test_more_requests_than_the_engine_admits() -> None:
    found = reasons(kv_budget=(HUNDRED_MIB,), options={"max_num_seqs": 5}, concurrency=12)
    assert list(found) == ["max_num_seqs"]
    assert found["max_num_seqs"].message == (
        "max_num_seqs admits 5 requests; the cache would hold 12."
    )
    assert found["max_num_seqs"].hint == "-o max_num_seqs=12"


def test_admission_goes_by_replica() -> None:
    limit = {"max_num_seqs": 5}
    found = reasons(kv_budget=(HUNDRED_MIB,), options=limit, concurrency=23, dp=2)
    assert found["max_num_seqs"].message == (
        "max_num_seqs admits 10 requests; the cache would hold 24."
    )
    assert found["max_num_seqs"].hint == "-o max_num_seqs=12"
    assert list(reasons(kv_budget=(HUNDRED_MIB,), options=limit, concurrency=25, dp=2)) == [
        "max_num_seqs",
        "kv_cache_full",
    ]


def test_the_null_block_counts_where_both_limits_are_near() -> None:
    # 757 blocks hold 12 requests of 63 and the null block; 756 hold 11.
    limit = {"max_num_seqs": 5}
    assert "max_num_seqs" in reasons(kv_budget=(757 * 2**17,), options=limit, concurrency=12)
    assert "kv_cache_full" in reasons(kv_budget=(756 * 2**17,), options=limit, concurrency=12)


def test_a_pool_larger_than_the_card() -> None:
    found = reasons(options={"kv_cache_memory_bytes": 79 * GIB})
    assert list(found) == ["pool_too_large"]
    # 4 MiB of weights, 469.5 of sampling, 512 + 384 + 408 and 0.45 GiB of runtime memory; 1 GiB is
    # free: 1,777.5 + 460.8 - 1,024.
    assert found["pool_too_large"].message == (
        "The KV cache was set to 79.00 GiB a GPU: 1.19 GiB more than there is room for."
    )
    assert found["pool_too_large"].hint is not None


def test_more_blocks_than_memory() -> None:
    found = reasons(kv_budget=(2**17,), options={"num_gpu_blocks_override": 9})
    assert list(found) == ["pool_too_large"]
    assert "set to 1.1 MiB a GPU: 1 MiB more" in found["pool_too_large"].message


def test_what_lies_outside_has_to_fit_beside_the_budget() -> None:
    found = reasons(options={"gpu_memory_utilization": 0.999})
    assert list(found) == ["outside_budget_overdrawn"]
    # 0.45 GiB of context, 0.08 GiB beside the budget
    assert "(cuda_context) needs 378.9 MiB more than gpu_memory_utilization 0.999 leaves." in (
        found["outside_budget_overdrawn"].message
    )
    assert found["outside_budget_overdrawn"].hint == "Lower -o gpu_memory_utilization."


def test_both_can_be_wrong_at_once() -> None:
    found = reasons(options={"gpu_memory_utilization": 1.0}, concurrency=10**6)
    assert list(found) == ["max_num_seqs", "kv_cache_full", "outside_budget_overdrawn"]


@pytest.mark.parametrize(
    ("share", "code"),
    [
        # 0.15 GiB may be needed beyond the likely 0.45: below 0.9925 there is room for both.
        (0.9920, None),
        (0.9930, "outside_budget_tight"),
        (0.9943, "outside_budget_tight"),
        (0.9945, "outside_budget_overdrawn"),
    ],
)
def test_what_lies_outside_may_come_to_more(share: float, code: str | None) -> None:
    found = reasons(options={"gpu_memory_utilization": share})
    assert list(found) == ([] if code is None else [code])


def test_a_tight_fit_says_how_tight() -> None:
    (reason,) = reasons(options={"gpu_memory_utilization": 0.993}).values()
    assert reason.message == (
        "Only 112.6 MiB remain outside the budget for what vLLM does not count; that may need "
        "153.6 MiB more than is likely."
    )
    assert reason.hint == "Lower -o gpu_memory_utilization a little."


CONTEXT_BYTES, CONTEXT_HIGH = math.ceil(0.45 * GIB), math.ceil(0.60 * GIB)


@pytest.mark.parametrize(
    ("outside", "codes"),
    [
        # Bytes beside half of a card, and whether what is likely, and what is possible, fits.
        (CONTEXT_BYTES - 1, ["no_room_for_cache", "outside_budget_overdrawn"]),
        (CONTEXT_BYTES, ["no_room_for_cache", "outside_budget_tight"]),
        (CONTEXT_HIGH, ["no_room_for_cache", "outside_budget_tight"]),
        (CONTEXT_HIGH + 1, ["no_room_for_cache"]),
    ],
)
def test_what_lies_outside_is_counted_to_the_byte(outside: int, codes: list[str]) -> None:
    card = device(2 * outside / GIB)
    assert list(reasons(gpu=card, options={"gpu_memory_utilization": 0.5})) == codes


def test_every_line_outside_may_come_to_more() -> None:
    """Two ranks: 0.45 + 0.40 GiB are likely and 0.75 more possible; 0.67 are left."""
    found = reasons(tp=2, options={"gpu_memory_utilization": 0.981})
    assert list(found) == ["outside_budget_tight"]
    assert "that may need 768 MiB more than is likely." in found["outside_budget_tight"].message


@pytest.mark.parametrize(
    ("left", "code"),
    [(-1, "no_room_for_cache"), (0, "no_room_for_cache"), (1, "context_too_long")],
)
def test_no_room_is_none_to_the_byte(left: int, code: str) -> None:
    options = {"gpu_memory_utilization": 1.0}
    small = Vllm().prepare(Setup(model=TWO, gpu=device(8), context=1000, options=options))
    assert small.stages is not None
    card = device((small.stages[0].spent + left) / GIB)
    assert next(iter(reasons(gpu=card, options=options))) == code


def test_quantized_weights_are_not_advised_again() -> None:
    model = real("llama-3.1-70b")
    plain = reasons(model)["no_room_for_cache"].hint
    assert plain == "More GPUs (--tp), a smaller weight format (--weights fp8), or a larger GPU."
    packed = reasons(model.model_copy(update={"quantization": "awq"}))["no_room_for_cache"].hint
    assert packed == "More GPUs (--tp, --pp) or a larger GPU."


def test_a_given_pool_has_no_outside() -> None:
    assert reasons(options={"gpu_memory_utilization": 1.0, "kv_cache_memory_bytes": GIB}) == {}


LONG = toy(full(), full(), max_context=100_000)


def test_a_fit_that_the_range_does_not_bear_out() -> None:
    """What is likely left holds more than what is left at the high end of the range."""
    made = Vllm().prepare(Setup(model=LONG, gpu=device(80), context=20_000))
    assert made.low is not None
    sure = made.requests(made.pool.blocks(made.low), 20_000)
    likely = made.figures(20_000).requests
    assert sure < likely < 1024
    assert reasons(LONG, context=20_000, concurrency=sure) == {}
    found = reasons(LONG, context=20_000, concurrency=sure + 1)
    assert list(found) == ["within_uncertainty"]
    assert f"then {sure:,} requests are held." in found["within_uncertainty"].message
    assert found["within_uncertainty"].hint is not None
    assert list(reasons(LONG, context=20_000, concurrency=likely + 1)) == ["kv_cache_full"]


def test_the_longest_length_that_the_range_bears_out() -> None:
    endless = toy(full(), full(), max_context=10**8)
    made = Vllm().prepare(Setup(model=endless, gpu=device(80)))
    assert made.low is not None
    sure = made.pool.usable_blocks(made.low) * 16
    assert reasons(endless, context=sure) == {}
    assert list(reasons(endless, context=sure + 1)) == ["within_uncertainty"]


def test_a_length_that_the_range_does_not_bear_out() -> None:
    share = {"gpu_memory_utilization": 0.7}
    made = Vllm().prepare(Setup(model=TWO, gpu=device(3.2), context=1000, options=share))
    assert made.low is not None
    assert made.low[0] < 0 < made.available[0]
    found = reasons(gpu=device(3.2), options=share)
    assert list(found) == ["within_uncertainty"]
    assert "then 0 requests are held." in found["within_uncertainty"].message


@pytest.mark.parametrize(
    ("facts", "context", "said"),
    [
        ({}, 8192, None),
        (
            {},
            8193,
            "maximum of 8,192: it has no rope scaling; longer positions were never trained.",
        ),
        ({"rope_scaling": "yarn"}, 8193, "of 8,192: its rope scaling (yarn) is counted"),
        ({"extended_context": 100_000}, 100_000, None),
        ({"extended_context": 100_000}, 100_001, "maximum of 100,000"),
        ({"max_context": None}, 10**6, None),
    ],
)
def test_a_length_above_the_models_own(
    facts: dict[str, Any], context: int, said: str | None
) -> None:
    found = reasons(toy(full(), **facts), context=context)
    assert set(found) == ({"context_above_model_maximum"} if said else set())
    if said:
        assert said in found["context_above_model_maximum"].message
        assert found["context_above_model_maximum"].hint is not None


def test_a_release_newer_than_all_is_pointed_out() -> None:
    found = reasons(version="0.99.1")
    assert list(found) == ["engine_newer_than_modelled"]
    assert "vLLM 0.99.1 is newer than the newest release modelled (0.33.0)" in (
        found["engine_newer_than_modelled"].message
    )


@pytest.mark.parametrize(
    ("vendor", "sm", "said"),
    [
        ("nvidia", "9.0", None),
        ("nvidia", "8.9", None),
        ("nvidia", "10.0", None),
        ("nvidia", "8.0", None),
        ("nvidia", "12.0", None),
        ("nvidia", "7.0", "for compute capability 7.0;"),
        ("nvidia", "8.7", "for compute capability 8.7;"),
        ("nvidia", None, None),
        ("custom", None, None),
        ("amd", None, "backends on X-1 were not checked; an H100's rules"),
        ("intel", None, "backends on X-1 were not checked; an H100's rules"),
    ],
)
def test_devices_that_were_not_checked(vendor: str, sm: str | None, said: str | None) -> None:
    card = GpuSpec(
        id="X-1",
        name="X",
        vendor=vendor,  # type: ignore[arg-type]
        architecture="x",
        compute_capability=sm,
        torch_total_gib=Fact(value=80, source="x"),
    )
    found = reasons(gpu=card)
    assert set(found) == ({"device_not_checked"} if said else set())
    if said:
        assert said in found["device_not_checked"].message


def test_notes_on_the_model_are_repeated() -> None:
    found = reasons(toy(full(), notes=("It has a tower that is not counted.",)))
    assert found["model_note"].message == "It has a tower that is not counted."


def test_causes_come_before_cautions() -> None:
    found = reasons(
        toy(full(), notes=("A note.",)),
        context=9000,
        concurrency=10**6,
        version="0.99.0",
        gpu=device(80, sm=(8, 7)),
        options={"gpu_memory_utilization": 1.0},
    )
    assert list(found) == [
        "max_num_seqs",
        "kv_cache_full",
        "outside_budget_overdrawn",
        "context_above_model_maximum",
        "engine_newer_than_modelled",
        "device_not_checked",
        "model_note",
    ]


def test_blocks_that_are_held_while_a_prompt_is_read() -> None:
    """While its prompt is read a window may have all of a chunk in flight, later two tokens.

    Of 8,000 tokens 500 blocks are full attention's and 501 the window's. A request that decodes
    holds 101 tokens of the window, 7 blocks and one more where they are not aligned, so 508.
    """
    model = toy(full(), window(100))
    said = reasons(model, context=8000, kv_budget=(HUNDRED_MIB,))["in_flight_reserved"].message
    assert "reserves 1,001 blocks a request" in said
    assert "holds 508: 3 of them fit at once" in said
    chunks = {"max_num_batched_tokens": 128}
    assert not reasons(model, context=8000, kv_budget=(HUNDRED_MIB,), options=chunks)


def test_a_class_that_no_release_lists() -> None:
    unknown = TWO.model_copy(update={"architecture": "SomeNewForCausalLM"})
    found = reasons(unknown, kv_budget=(HUNDRED_MIB,))
    assert list(found) == ["class_not_listed"]
    assert "lists no class SomeNewForCausalLM" in found["class_not_listed"].message
    assert reasons(unknown, kv_budget=(HUNDRED_MIB,), version="0.9.0") == {}
