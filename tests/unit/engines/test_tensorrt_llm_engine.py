"""TensorRT-LLM from options to verdict: what is accepted, what is refused, what it costs."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from real_models import device, full, real, real_names, toy, window

import kvplan
from kvplan.errors import KvplanError, UnknownNameError, UsageError
from kvplan.ledger import total
from kvplan.plan import Plan

GIB = 2**30


def planned(model: Any = "llama-3.1-8b", gpu: Any = "H100", **changes: Any) -> Plan:
    arguments: dict[str, Any] = {
        "context": 8192,
        "engine": "tensorrt-llm",
        "offline": True,
    } | changes
    spec = real(model) if isinstance(model, str) else model
    return kvplan.size(spec, gpu, **arguments)


def token_bytes(plan: Plan) -> float:
    assert plan.kv is not None
    return plan.kv.bytes_per_token


def line(plan: Plan, name: str) -> int:
    return sum(entry.bytes for entry in plan.ledger if entry.name.partition(".")[0] == name)


def codes(plan: Plan) -> list[str]:
    return [reason.code for reason in plan.reasons]


def test_the_fraction_is_of_what_is_left_after_the_peak() -> None:
    plan = planned()
    assert plan.kv is not None
    assert plan.capacity is not None
    assert line(plan, "weights") == 2 * 8_030_261_248
    peak = sum(entry.bytes for entry in plan.ledger if entry.section == "budget")
    budget = int((plan.gpu.total_bytes - peak) * 0.9)
    assert plan.kv.budget_bytes == budget
    assert plan.capacity.blocks == budget // 131_072 // 32
    assert plan.capacity.tokens == plan.capacity.blocks * 32
    assert plan.kv.allocated_bytes == plan.capacity.tokens * 131_072
    assert plan.capacity.requests == plan.capacity.blocks // 256
    assert total(plan.ledger) == plan.gpu.total_bytes
    left = line(plan, "left_unused")
    assert left == plan.gpu.total_bytes - peak - plan.kv.allocated_bytes


def test_max_num_tokens_drives_the_peak() -> None:
    few, many = (planned(engine_options={"max_num_tokens": tokens}) for tokens in (1024, 16_384))
    assert line(many, "activation_peak") == 16 * line(few, "activation_peak")
    assert few.capacity is not None
    assert many.capacity is not None
    assert few.capacity.tokens > many.capacity.tokens


def test_bytes_of_a_token() -> None:
    assert token_bytes(planned()) == 32 * 8 * 256 * 2
    assert token_bytes(planned(kv_dtype="fp8")) == 32 * 8 * 256
    # Half a byte an element, and a byte of scale for 16.
    assert token_bytes(planned(kv_dtype="nvfp4")) == 32 * 8 * 256 * 9 // 16
    assert token_bytes(planned(tp=4)) == 32 * 2 * 256 * 2
    # Fewer heads than ranks are replicated.
    assert token_bytes(planned(tp=16)) == 32 * 256 * 2
    latent = planned("deepseek-v2-lite", tp=8)
    assert token_bytes(latent) == 27 * 576 * 2
    assert latent.capacity is not None
    assert [group.kind for group in latent.capacity.groups] == ["latent"]
    sparse = planned("deepseek-v3.2", device(400), tp=8)
    assert token_bytes(sparse) == 61 * (1152 + 132)


def test_a_four_bit_cache_wants_blackwell() -> None:
    assert "device_not_checked" in codes(planned(kv_dtype="nvfp4"))
    assert "device_not_checked" not in codes(planned(gpu="B200", kv_dtype="nvfp4"))


def test_windows() -> None:
    plan = planned("gpt-oss-20b")
    assert plan.capacity is not None
    groups = {group.kind: group for group in plan.capacity.groups}
    assert (groups["window"].layers, groups["full"].layers) == (12, 12)
    # 128 tokens, and one block more: 5 of 32.
    assert groups["window"].blocks_per_request == 5
    assert "equal_shares" in codes(plan)
    older = planned("gpt-oss-20b", engine="tensorrt-llm==1.2.0")
    assert older.capacity is not None
    assert [group.kind for group in older.capacity.groups] == ["full"]
    assert "windows_kept_whole" in codes(older)
    asked = planned(
        "gpt-oss-20b",
        engine="tensorrt-llm==1.2.0",
        engine_options={"max_attention_window": "128,8192"},
    )
    assert asked.capacity is not None
    assert asked.capacity.tokens == plan.capacity.tokens


def test_the_older_path() -> None:
    plan = planned(engine="tensorrt-llm==0.18.0")
    assert plan.capacity is not None
    assert plan.kv is not None
    assert plan.engine.options["backend"] == "tensorrt"
    assert plan.capacity.block_size == 64
    # The last block is beyond the budget.
    assert plan.capacity.blocks == -(-(plan.kv.budget_bytes // 131_072) // 64)
    chosen = planned(engine_options={"backend": "tensorrt"})
    assert chosen.engine.options["backend"] == "tensorrt"


def test_a_tier_on_the_host() -> None:
    plan = planned(engine_options={"host_cache_size": "20GiB"})
    note = next(reason for reason in plan.reasons if reason.code == "host_tier")
    # 20 GiB of blocks of 4 MiB.
    assert "5,120 blocks" in note.message
    alone = planned()
    assert plan.capacity == alone.capacity


def test_data_parallel_attention() -> None:
    plan = planned(tp=4, engine_options={"enable_attention_dp": True})
    assert token_bytes(plan) == 131_072
    assert plan.capacity is not None
    assert plan.capacity.requests % 4 == 0
    assert "attention_groups" in codes(plan)
    # Every rank has all of the attention and the MLP.
    assert line(plan, "weights") == 2 * 8_030_261_248


def test_limits_of_options() -> None:
    tokens = planned(engine_options={"max_tokens": 1000})
    assert tokens.capacity is not None
    assert tokens.capacity.blocks == 31
    sized = planned(engine_options={"max_gpu_total_bytes": "1GiB"})
    assert sized.capacity is not None
    assert sized.capacity.tokens == 8192
    batch = planned(engine_options={"max_batch_size": 3}, concurrency=4)
    assert (batch.verdict, batch.reasons[0].code) == ("does_not_fit", "max_batch_size")
    assert batch.reasons[0].hint == "-o max_batch_size=4"
    length = planned(engine_options={"max_seq_len": 4096})
    assert (length.verdict, length.reasons[0].code) == ("does_not_fit", "context_too_long")


def test_given_bytes() -> None:
    plan = planned(kv_budget=GIB)
    assert plan.capacity is not None
    assert plan.kv is not None
    assert (plan.capacity.tokens, plan.kv.budget_low) == (8192, None)
    assert total(plan.ledger) == GIB


def test_too_small_a_card() -> None:
    plan = planned("llama-3.1-70b")
    assert (plan.verdict, plan.reasons[0].code) == ("does_not_fit", "no_room_for_cache")
    assert plan.capacity is not None
    assert (plan.capacity.blocks, plan.capacity.requests) == (0, 0)
    assert total(plan.ledger) == plan.gpu.total_bytes


def test_scales_that_the_shares_leave_out_may_not_fit() -> None:
    # Windows share by elements alone; a ninth more is allocated, beyond a fraction of 0.95.
    plan = planned(
        toy(full(), window(512)),
        device(20),
        kv_dtype="nvfp4",
        engine_options={"free_gpu_memory_fraction": 0.95},
    )
    assert (plan.verdict, plan.reasons[0].code) == ("does_not_fit", "pool_too_large")
    assert line(plan, "left_unused") < 0
    assert plan.capacity is not None
    assert plan.capacity.requests == 0
    assert planned(toy(full(), full()), device(20), kv_dtype="nvfp4").verdict == "fits"


def test_too_many_requests() -> None:
    plan = planned(concurrency=10_000)
    assert (plan.verdict, plan.reasons[0].code) == ("does_not_fit", "kv_cache_full")
    # Short ones meet the limit of the batch first.
    short = planned(context=64, concurrency=10_000)
    assert [reason.code for reason in short.reasons[:2]] == ["max_batch_size", "kv_cache_full"]
    assert short.capacity is not None
    assert short.capacity.requests == 2048


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"free_gpu_memory_fracton": 0.8}, UnknownNameError, "free_gpu_memory_fraction"),
        ({"free_gpu_memory_fraction": 1.0}, UsageError, "free_gpu_memory_fraction"),
        ({"tokens_per_block": 48}, UsageError, "power of two"),
        ({"max_attention_window": []}, UsageError, "empty"),
        ({"max_attention_window": "1,x"}, UsageError, "max_attention_window"),
        ({"tp_size": 2}, UsageError, "--tp"),
        ({"enable_attention_dp": 1}, UsageError, "enable_attention_dp"),
        ({"backend": "triton"}, UsageError, "pytorch"),
        ({"max_tokens": 1, "kv_cache_config.max_tokens": 2}, UsageError, "twice"),
    ],
)
def test_options_that_are_wrong(options: dict[str, Any], error: type, words: str) -> None:
    with pytest.raises(error) as it:
        planned(engine_options=options)
    assert it.value.hint
    assert words in f"{it.value} {it.value.hint}"


def test_other_names_of_options() -> None:
    plan = planned(engine_options={"--kv_cache_free_gpu_memory_fraction": 0.5, "ep_size": 2}, tp=2)
    assert plan.engine.options["free_gpu_memory_fraction"] == 0.5
    assert plan.engine.options["moe_expert_parallel_size"] == 2


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"engine_options": {"speculative_config": {"a": 1}}}, "not_modelled"),
        ({"engine_options": {"max_beam_width": 4}}, "not_modelled"),
        ({"engine_options": {"ep_size": 2}, "tp": 4}, "not_modelled"),
        ({"model": "qwen3-next-80b-a3b"}, "not_modelled"),
        ({"model": "mamba2-2.7b"}, "not_modelled"),
        ({"model": "whisper-large-v3"}, "not_modelled"),
        ({"dcp": 2, "tp": 2}, "not_modelled"),
        ({"engine": "tensorrt-llm==0.8.0"}, "engine_refuses"),
        ({"engine": "tensorrt-llm==0.9.0", "engine_options": {"backend": "pytorch"}},
         "engine_refuses"),
        ({"gpu": "MI300X"}, "engine_refuses"),
        ({"tp": 3}, "engine_refuses"),
        ({"pp": 64}, "engine_refuses"),
    ],
)  # fmt: skip
def test_what_is_refused_by_name(changes: dict[str, Any], code: str) -> None:
    plan = planned(**changes)
    assert (plan.verdict, plan.reasons[0].code) == ("refused", code)
    assert plan.reasons[0].hint
    assert plan.engine.name == "tensorrt-llm"


def test_trust_is_limited_by_name() -> None:
    assert "engine_newer_than_modelled" in codes(planned(engine="tensorrt-llm==2.0"))
    assert "runtime_not_calibrated" in codes(planned())
    assert "runtime_not_calibrated" not in codes(planned(kv_budget=GIB))
    assert "option_not_sized" in codes(planned(engine_options={"enable_block_reuse": True}))


@pytest.mark.parametrize("engine", ["tensorrt-llm", "tensorrt-llm==0.18"])
@pytest.mark.parametrize("name", real_names())
def test_every_family_is_planned_or_refused_by_name(name: str, engine: str) -> None:
    for concurrency in (1, 10**6):
        plan = planned(
            name, device(300), tp=8, engine=engine, concurrency=concurrency, advice=False
        )
        assert plan.reasons or plan.verdict == "fits"
        if plan.verdict == "refused":
            assert plan.reasons[0].code in {"not_modelled", "engine_refuses"}
            assert plan.reasons[0].hint
        else:
            assert total(plan.ledger) == plan.gpu.total_bytes


MODELS = st.sampled_from(
    [
        toy(full(), full()),
        toy(full(), window(512)),
        toy(window(512), window(512), full()),
        toy(full(4, 64), full(4, 64), full(4, 64)),
    ]
)
OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "free_gpu_memory_fraction": st.floats(0.05, 0.99),
        "tokens_per_block": st.sampled_from([16, 32, 64]),
        "max_batch_size": st.integers(1, 5000),
        "max_tokens": st.integers(1, 10**7),
        "max_num_tokens": st.integers(1, 10**5),
        "host_cache_size": st.integers(0, 10**12),
        "max_attention_window": st.lists(st.integers(1, 10**5), min_size=1, max_size=3),
    },
)
ARGUMENTS = st.fixed_dictionaries(
    {
        "tp": st.sampled_from([1, 2, 4]),
        "pp": st.sampled_from([1, 2]),
        "context": st.integers(1, 10**6),
        "engine_options": OPTIONS,
        "kv_dtype": st.sampled_from(["auto", "fp8", "nvfp4"]),
        "engine": st.sampled_from(["tensorrt-llm==0.12", "tensorrt-llm==1.0", "tensorrt-llm"]),
    }
)


@given(MODELS, st.floats(1, 300), ARGUMENTS)
def test_lines_sum_to_the_device(model: Any, gib: float, arguments: dict[str, Any]) -> None:
    plan = planned(model, device(gib), advice=False, **arguments)
    assert total(plan.ledger) == plan.gpu.total_bytes
    assert plan.capacity is not None
    assert plan.kv is not None
    pool = sum(entry.bytes for entry in plan.ledger if entry.section == "pool")
    assert pool == plan.kv.allocated_bytes
    if plan.verdict == "fits":
        assert all(entry.bytes >= 0 for entry in plan.ledger)
        assert plan.capacity.requests >= 1
    for entry in plan.ledger:
        assert entry.low <= entry.bytes <= entry.high


def test_what_the_run_gave_back_counts_at_both_ends() -> None:
    """Repeated heads: the estimate counts half a token, and what is free then is the limit."""
    plan = planned(tp=16, engine_options={"max_num_tokens": 131_072})
    assert plan.capacity is not None
    low, high = plan.capacity.tokens_low, plan.capacity.tokens_high
    assert low is not None
    assert high is not None
    assert low < plan.capacity.tokens < high


@given(MODELS, st.integers(1, 2**34), ARGUMENTS)
def test_lines_of_a_given_budget(model: Any, given: int, arguments: dict[str, Any]) -> None:
    """A block that is rounded up lies beyond it."""
    plan = planned(model, kv_budget=given, advice=False, **arguments)
    assert all(entry.bytes >= 0 for entry in plan.ledger)
    assert total(plan.ledger) == max(given, line(plan, "kv_cache"))


def test_gguf_files_are_refused() -> None:
    plan = planned("llama-3.1-8b", weights="gguf:Q4_K_M")
    assert plan.verdict == "refused"
    assert plan.reasons[0].code == "not_modelled"
    assert "GGUF" in plan.reasons[0].message


@given(MODELS, st.floats(1, 300), st.floats(0, 100), ARGUMENTS, st.integers(0, 10**5))
def test_laws(model: Any, gib: float, more: float, arguments: dict[str, Any], longer: int) -> None:
    # It follows the context otherwise, and with it the windows.
    arguments["engine_options"]["max_seq_len"] = 10**7
    small = planned(model, device(gib), advice=False, **arguments)
    large = planned(model, device(gib + more), advice=False, **arguments)
    assert small.capacity is not None
    assert large.capacity is not None
    assert small.capacity.tokens <= large.capacity.tokens
    assert small.capacity.requests <= large.capacity.requests
    longest = arguments | {"context": arguments["context"] + longer}
    after = planned(model, device(gib), advice=False, **longest)
    assert after.capacity is not None
    assert small.capacity.requests >= after.capacity.requests


NAMES = ("free_gpu_memory_fraction", "tokens_per_block", "max_num_tokens", "backend", "ep_size",
         "max_attention_window", "host_cache_size", "enable_attention_dp", "x")  # fmt: skip
VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-5, 10**6), st.floats(), st.text(), st.lists(st.text())
)


@given(
    st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=3),
    st.sampled_from(["auto", "fp8", "nvfp4", "zzz"]),
)
def test_only_known_errors(options: dict[str, Any], kv_dtype: str) -> None:
    hint: str | None = None
    try:
        plan = planned(toy(full(), full()), engine_options=options, kv_dtype=kv_dtype)
    except KvplanError as error:
        hint = error.hint
    else:
        hint = plan.verdict
    assert hint
