"""Whole plans under llama.cpp: figures by hand, reasons, laws."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llamacpp_cases import spec_from

import kvplan
from kvplan.errors import UsageError
from kvplan.formula import compile_formula
from kvplan.ledger import total
from kvplan.plan import Plan

LLAMA, QWEN_MOE = "meta-llama/Llama-3.1-8B-Instruct", "Qwen/Qwen3-30B-A3B"
TOKEN = 32 * 2 * 8 * 128 * 2  # 32 layers, K and V, 8 heads of 128, float16


def size(
    gpu: str, model: str = LLAMA, *, options: dict[str, Any] | None = None, **more: Any
) -> Plan:
    asked: dict[str, Any] = {"weights": "gguf:Q4_K_M", "engine": "llama.cpp", "offline": True}
    return kvplan.size(model, gpu, engine_options=options or {}, **(asked | more))


def codes(plan: Plan) -> list[str]:
    return [reason.code for reason in plan.reasons]


def test_the_plan_of_four_slots_by_hand() -> None:
    plan = size("RTX 4090", options={"n_ctx": 32_768, "parallel": 4, "cache_type_k": "q8_0"})
    cell = 32 * (8 * 128 * 34 // 32 + 8 * 128 * 2)
    assert plan.verdict == "fits"
    assert plan.kv is not None
    assert plan.capacity is not None
    assert plan.kv.allocated_bytes == 32_768 * cell
    assert plan.kv.bytes_per_token == cell
    assert plan.kv.bytes_per_request == 8192 * cell
    assert plan.kv.dtype == "q8_0/f16"
    assert (plan.capacity.tokens, plan.capacity.requests, plan.workload.context) == (
        32_768,
        4,
        8192,
    )
    assert plan.capacity.bytes_per_block == 256 * cell
    assert plan.engine.options["n_gpu_layers"] == 33


def test_the_embedding_stays_on_the_host() -> None:
    plan = size("RTX 4090", context=8192)
    weights = {line.name for line in plan.ledger if line.name.startswith("weights")}
    assert "weights.embedding" not in weights
    host = plan.devices[-1]
    assert host.weights_bytes == 128_256 * 4096 // 256 * 144  # q4_K
    whole = sum(device.weights_bytes for device in plan.devices)
    assert whole == 4_912_898_304  # as llama.cpp's own planner sizes the file


def test_without_options_a_plan_holds_one_request_and_reports_what_fits() -> None:
    plan = size("RTX 4090", context=8192)
    assert plan.kv is not None
    assert plan.capacity is not None
    assert plan.kv.allocated_bytes == 8192 * TOKEN
    assert plan.capacity.requests == plan.capacity.tokens // 8192 > 10
    more = size("RTX 4090", context=8192, concurrency=plan.capacity.requests)
    assert more.verdict == "fits"
    assert more.kv is not None
    assert more.kv.allocated_bytes == plan.capacity.requests * 8192 * TOKEN
    assert size("RTX 4090", context=8192, concurrency=plan.capacity.requests + 1).verdict != "fits"


def test_too_little_memory_says_what_fit_would_do() -> None:
    plan = size("RTX 3060", "meta-llama/Llama-3.1-70B-Instruct", context=8192)
    assert plan.verdict == "does_not_fit"
    assert codes(plan)[:3] == ["device_full", "fit_choice", "fit_context"]
    assert "of 81 layers on the GPUs" in plan.reasons[1].message
    fitted = size(
        "RTX 3060", "meta-llama/Llama-3.1-70B-Instruct", context=8192, options={"ngl": "auto"}
    )
    assert fitted.verdict == "fits"
    assert "layers_on_host" in codes(fitted)
    layers = fitted.engine.options["n_gpu_layers"]
    assert f"{layers} of 81 layers" in plan.reasons[1].message
    assert fitted.devices[0].left_bytes is not None
    assert fitted.devices[0].left_bytes >= 2**30
    one_more = size(
        "RTX 3060", "meta-llama/Llama-3.1-70B-Instruct", context=8192, options={"ngl": layers + 1}
    )
    assert (one_more.devices[0].left_bytes or 0) < 2**30


def test_experts_stay_on_the_host_first() -> None:
    plan = size("RTX 3060", QWEN_MOE, context=8192, options={"n_gpu_layers": "auto"})
    assert plan.verdict == "fits"
    assert plan.engine.options["n_gpu_layers"] == 49
    kept = plan.engine.options["n_cpu_moe"]
    assert 0 < kept < 48
    by_hand = size("RTX 3060", QWEN_MOE, context=8192, options={"n_cpu_moe": kept})
    assert by_hand.devices[0].cache_bytes == plan.devices[0].cache_bytes
    assert size("RTX 3060", QWEN_MOE, context=8192, options={"cpu_moe": True}).verdict == "fits"


def test_several_unlike_gpus_and_the_host() -> None:
    plan = size("RTX 4090 + RTX 3060 + cpu:32GiB", context=8192, concurrency=4)
    assert [device.id for device in plan.devices] == ["RTX-4090-24GB", "RTX-3060-12GB", "cpu:32GiB"]
    first, second, host = plan.devices
    assert first.layers + second.layers == 32
    assert first.layers > second.layers  # by free memory
    assert host.total_bytes == 32 * 2**30
    assert first.cache_bytes + second.cache_bytes == 4 * 8192 * TOKEN
    assert plan.gpu.count == 2


def test_a_host_too_small_is_said() -> None:
    plan = size("RTX 4090 + cpu:1GiB", "meta-llama/Llama-3.1-70B-Instruct", context=4096,
                options={"ngl": 30})  # fmt: skip
    assert plan.verdict == "does_not_fit"
    assert plan.reasons[0].message.startswith("The host")


def test_a_box_without_gpus() -> None:
    plan = size("cpu:16GiB", context=8192)
    assert plan.verdict == "fits"
    assert plan.engine.options["n_gpu_layers"] == 0
    assert plan.kv is not None
    assert plan.kv.allocated_bytes == 8192 * TOKEN
    assert total(plan.ledger) == 16 * 2**30
    assert size("Apple-M2-Max-32GB", context=8192).verdict == "fits"


def test_a_cache_on_the_host_takes_nothing_of_the_gpu() -> None:
    plan = size("RTX 4090", context=8192, options={"no_kv_offload": True})
    assert [device.cache_bytes for device in plan.devices] == [0, 8192 * TOKEN]


def test_a_given_budget_is_planned_exactly() -> None:
    plan = size("RTX 4090", context=8192, kv_budget=4 * 2**30)
    assert plan.capacity is not None
    assert plan.capacity.requests == 4
    assert plan.kv is not None
    assert plan.kv.budget_low is None
    assert total(plan.ledger) == 4 * 2**30
    assert size("RTX 4090", context=8192, concurrency=5, kv_budget=4 * 2**30).verdict != "fits"


def test_the_longest_context_fits_and_a_longer_does_not() -> None:
    plan = size("RTX 3060", context="auto")
    longest = plan.workload.context or 0
    assert plan.verdict == "fits"
    assert 10_000 < longest < 131_072
    assert size("RTX 3060", context=longest + 256).verdict == "does_not_fit"


def test_a_draft_has_weights_and_a_cache_of_its_own() -> None:
    options = {"model_draft": "Qwen/Qwen3-0.6B"}
    plan = size("RTX 4090", "Qwen/Qwen3-8B", context=8192, options=options)
    alone = size("RTX 4090", "Qwen/Qwen3-8B", context=8192)
    assert plan.kv is not None
    assert alone.kv is not None
    draft = 28 * 2 * 8 * 128 * 2 * 8192
    assert plan.kv.allocated_bytes - alone.kv.allocated_bytes == draft
    names = {line.name for line in plan.ledger}
    assert {"draft_kv_cache.full", "draft_compute_buffer", "weights.draft_mlp"} <= names


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"n_ctx": 1000, "n_seq_max": 7}, "n_ctx_rounded"),
        ({"n_ctx": 262_144}, "context_above_model_maximum"),
        ({"cache_ram": 4096}, "option_not_sized"),
        ({"n_gpu_layers": 10}, "layers_on_host"),
    ],
)
def test_what_a_reader_has_to_know(options: dict[str, Any], code: str) -> None:
    assert code in codes(size("H100", options=options))


def test_slots_are_a_limit_of_their_own() -> None:
    plan = size("H100", options={"n_ctx": 8192, "n_seq_max": 2}, concurrency=3)
    assert plan.verdict == "does_not_fit"
    assert plan.reasons[0].code == "slots_full"
    assert size("H100", context=256, concurrency=300).reasons[0].code == "too_many_sequences"


def test_unified_slots_share_the_cells() -> None:
    options = {"n_ctx": 32_768, "n_seq_max": 4, "kv_unified": True}
    plan = size("RTX 4090", options=options, context=8192, concurrency=4)
    assert plan.verdict == "fits"
    assert size("RTX 4090", options=options, context=8448, concurrency=4).verdict == "does_not_fit"


@pytest.mark.parametrize(
    "more",
    [
        {"tp": 2},
        {"options": {"split_mode": "row"}},
        {"options": {"flash_attn": False, "cache_type_v": "q8_0"}},
        {"weights": "awq"},
        {"engine": "llama.cpp==b4000"},
    ],
)
def test_refusals(more: dict[str, Any]) -> None:
    plan = size("H100", context=4096, **more)
    assert plan.verdict == "refused"
    assert plan.reasons[0].message


@pytest.mark.parametrize(
    "more",
    [
        {"dtype": "float16"},
        {"kv_dtype": "fp8"},
        {"kv_dtype": "q8_0", "options": {"cache_type_k": "f16"}},
        {"options": {"n_seq_max": 300}},
        {"options": {"tensor_split": "1,1,1"}, "gpu": "L4+T4"},
        {"gpu": "cpu:8GiB+cpu:8GiB"},
        {"gpu": "L4+T4", "pp": 3},
        {"gpu": "L4+T4", "engine": "vllm", "weights": "auto"},
        {"gpu": "cpu:64GiB", "engine": "vllm", "weights": "auto"},
        {"options": {"spec_type": "draft-eagle3"}},
    ],
)
def test_usage_errors(more: dict[str, Any]) -> None:
    gpu = more.pop("gpu", "H100")
    with pytest.raises(UsageError) as error:
        size(gpu, context=4096, **more)
    assert error.value.hint


def test_one_kv_dtype_is_both_halves() -> None:
    plan = size("H100", context=4096, kv_dtype="q8_0")
    assert plan.kv is not None
    assert plan.kv.allocated_bytes == 4096 * TOKEN * 34 // 64
    assert plan.kv.dtype == "q8_0"


def test_a_plain_checkpoint_is_planned_as_it_would_be_converted() -> None:
    plan = size("H100", context=4096, weights="auto")
    assert sum(device.weights_bytes for device in plan.devices) == pytest.approx(16.06e9, rel=0.001)
    assert "not_a_gguf_file" not in codes(plan)


def test_gpus_alike_come_from_stages_or_shares() -> None:
    by_stages = size("L4", context=4096, pp=2)
    by_shares = size("L4", context=4096, options={"tensor_split": [1, 1]})
    assert by_stages.devices == by_shares.devices
    assert by_stages.parallelism == by_shares.parallelism
    uneven = size("L4", context=4096, options={"tensor_split": "3,1"})
    assert [device.layers for device in uneven.devices] == [25, 7, 0]


def test_an_older_build_reserves_logits_for_the_whole_batch() -> None:
    new, old = (size("H100", context=4096, engine=f"llama.cpp=={v}") for v in ("b10488", "b8763"))
    assert old.devices[0].compute_bytes == 4 * 512 * (128_256 + 4096)
    assert new.devices[0].compute_bytes < old.devices[0].compute_bytes
    assert "fit_margin" not in codes(size("L4", context=4096, engine="llama.cpp==b7079"))


CONTEXTS = st.integers(256, 131_072)


@settings(max_examples=40)
@given(
    CONTEXTS,
    st.integers(1, 20),
    st.sampled_from(["RTX 4090", "RTX 3060", "L4+T4", "cpu:24GiB", "Apple-M2-16GB"]),
    st.sampled_from([{}, {"ngl": 12}, {"ngl": "auto"}, {"kv_unified": True}, {"n_ctx": 20_000}]),
)
def test_laws_of_plans(context: int, concurrency: int, gpu: str, options: dict[str, Any]) -> None:
    plan = size(gpu, context=context, concurrency=concurrency, options=options, advice=False)
    assert total(plan.ledger) == plan.gpu.total_bytes
    for line in plan.ledger:
        assert line.low <= line.bytes <= line.high
        assert compile_formula(line.formula).evaluate_bytes(line.inputs) == line.bytes
        assert line.bytes >= 0 or plan.verdict == "does_not_fit"
    assert plan.kv is not None
    assert plan.capacity is not None
    assert (plan.capacity.requests >= concurrency) or plan.verdict == "does_not_fit"
    assert (plan.kv.budget_low or 0) <= plan.kv.budget_bytes <= (plan.kv.budget_high or 0)
    pool = sum(line.bytes for line in plan.ledger if line.section == "pool")
    assert pool == plan.kv.allocated_bytes
    for device in plan.devices:
        if device.left_bytes is not None and device.total_bytes is not None:
            parts = (device.weights_bytes, device.cache_bytes, device.compute_bytes)
            beside = device.process_bytes + device.others_bytes
            assert device.left_bytes == device.total_bytes - sum(parts) - beside


@settings(max_examples=25)
@given(CONTEXTS, st.integers(8, 80), st.integers(1, 16))
def test_more_memory_or_less_context_never_holds_fewer(context: int, gib: int, more: int) -> None:
    def held(context: int, gib: int) -> int:
        plan = size(f"custom:{gib}GiB", context=context, advice=False)
        assert plan.capacity is not None
        return plan.capacity.requests

    here = held(context, gib)
    assert held(context, gib + more) >= here
    assert held(max(1, context // 2), gib) >= here


def test_advice_is_in_the_engines_own_types() -> None:
    plan = size("RTX 3060", context=8192, concurrency=8)
    assert plan.verdict == "does_not_fit"
    first = plan.advice[0]
    assert first.change == {"kv_dtype": "q8_0"}
    assert size("RTX 3060", context=8192, concurrency=8, kv_dtype="q8_0").verdict == "fits"
    assert not any("FP8" in advice.action for advice in plan.advice)


def test_layers_that_all_differ_make_one_line() -> None:
    heads = list(range(1, 81))
    spec = spec_from(
        {
            "general.architecture": "openelm", "openelm.block_count": 80,
            "openelm.context_length": 2048, "openelm.embedding_length": 1280,
            "openelm.feed_forward_length": 1280, "openelm.attention.head_count": heads,
            "openelm.attention.head_count_kv": heads, "openelm.attention.key_length": 64,
            "openelm.attention.value_length": 64, "openelm.vocab_size": 32_000,
        }
    )  # fmt: skip
    plan = kvplan.size(spec, "H100", engine="llama.cpp", context=2048)
    (line,) = [line for line in plan.ledger if line.section == "pool"]
    assert line.bytes == 2048 * sum(heads) * 2 * 64 * 2
    assert plan.capacity is not None
    assert len(plan.capacity.groups) == 80


def test_a_tied_embedding_is_loaded_once_more_beside_the_output_layer() -> None:
    plan = size("L4", "Qwen/Qwen3-0.6B", context=4096, weights="gguf:F16")
    matrix = 151_936 * 1024 * 2
    gpu, host = plan.devices
    assert host.weights_bytes == matrix
    (head,) = [line for line in plan.ledger if line.name == "weights.lm_head"]
    assert head.bytes == matrix
    on_host = size("L4", "Qwen/Qwen3-0.6B", context=4096, weights="gguf:F16", options={"ngl": 0})
    whole = gpu.weights_bytes + host.weights_bytes
    assert on_host.devices[1].weights_bytes == whole - matrix


def test_compute_buffers_by_hand() -> None:
    """Two moments; several GPUs keep their inputs four times; an idle host hands them on."""
    ubatch, cells, hidden = 512, 8192, 4096
    attention = ubatch * (4 * (2 * 14_336 + 5 * hidden) + 6 * cells)
    inputs = 4 * ubatch * (cells + hidden)
    one = size("L4", context=cells)
    assert [d.compute_bytes for d in one.devices] == [attention, inputs]
    two = size("L4", context=cells, pp=2)
    assert [d.compute_bytes for d in two.devices] == [attention + 3 * inputs] * 2 + [4 * inputs]
    scores = size("L4", context=cells, options={"flash_attn": False})
    assert (
        scores.devices[0].compute_bytes == attention - 2 * cells * ubatch + 4 * cells * 32 * ubatch
    )
    logits = size("L4", context=512, options={"n_outputs_max": 0})
    assert logits.devices[0].compute_bytes == 4 * ubatch * (128_256 + hidden)
    half = size("L4", context=cells, options={"ngl": 16})
    assert half.devices[1].compute_bytes == attention
