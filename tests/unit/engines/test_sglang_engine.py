"""SGLang from options to verdict: what is accepted, what is refused, what it costs."""

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
    arguments: dict[str, Any] = {"context": 8192, "engine": "sglang", "offline": True} | changes
    spec = real(model) if isinstance(model, str) else model
    return kvplan.size(spec, gpu, **arguments)


def line(plan: Plan, name: str) -> int:
    return sum(entry.bytes for entry in plan.ledger if entry.name.partition(".")[0] == name)


def codes(plan: Plan) -> list[str]:
    return [reason.code for reason in plan.reasons]


def test_a_plain_model() -> None:
    plan = planned(engine_options={"mem_fraction_static": 0.83})
    assert plan.kv is not None
    assert plan.capacity is not None
    weights = 2 * 8_030_261_248
    assert line(plan, "weights") == weights
    free = plan.gpu.total_bytes - line(plan, "cuda_context")
    budget = int(free * 0.83) - weights
    assert plan.kv.budget_bytes == budget
    tokens = budget // 131_072
    assert plan.capacity.tokens == tokens
    # One page more than is handed out, here of one token.
    assert plan.kv.allocated_bytes == (tokens + 1) * 131_072
    assert plan.capacity.requests == (tokens) // 8192
    assert plan.kv.bytes_per_token == 131_072
    assert plan.capacity.tokens_low is not None
    assert plan.capacity.tokens_high is not None
    assert plan.capacity.tokens_low < tokens < plan.capacity.tokens_high
    assert total(plan.ledger) == plan.gpu.total_bytes


def test_the_default_fraction_is_that_of_the_card() -> None:
    plan = planned()
    assert plan.engine.options["mem_fraction_static"] == 0.83
    assert "mem_fraction_static" in plan.engine.assumed
    assert planned(engine="sglang==0.5.3").engine.options["mem_fraction_static"] == 0.835


def test_two_pools() -> None:
    plan = planned("gpt-oss-20b")
    assert plan.capacity is not None
    kinds = {group.kind: group for group in plan.capacity.groups}
    assert set(kinds) == {"full", "window"}
    assert (kinds["full"].layers, kinds["window"].layers) == (12, 12)
    names = [entry.name for entry in plan.ledger if entry.section == "pool"]
    assert names == ["kv_cache.full", "kv_cache.window"]
    whole = planned("gpt-oss-20b", engine_options={"disable_hybrid_swa_memory": True})
    assert whole.capacity is not None
    assert [group.kind for group in whole.capacity.groups] == ["full"]
    # A token takes 1 + 0.8 × 1 of a layer's row instead of 2.
    assert plan.capacity.tokens == pytest.approx(whole.capacity.tokens * 2 / 1.8, rel=1e-4)


def test_windows_of_other_classes_are_kept_whole() -> None:
    plan = planned("gemma-3-27b")
    assert plan.capacity is not None
    assert [group.kind for group in plan.capacity.groups] == ["full"]
    assert plan.kv is not None
    assert plan.kv.bytes_per_token == 62 * 16 * 128 * 2 * 2


def test_states_have_a_pool() -> None:
    plan = planned("qwen3-next-80b-a3b", tp=4)
    assert plan.capacity is not None
    assert "recurrent" in {group.kind for group in plan.capacity.groups}
    assert line(plan, "state_cache") % 19_316_736 == 0
    assert line(plan, "state_cache") > 0
    assert total(plan.ledger) == plan.gpu.total_bytes


def test_latent_rows_are_not_split() -> None:
    one, eight = (planned("deepseek-v2-lite", tp=tp) for tp in (1, 8))
    assert one.kv is not None
    assert eight.kv is not None
    assert one.kv.bytes_per_token == eight.kv.bytes_per_token == 27 * 576 * 2


def test_sparse_attention_keeps_indexer_keys() -> None:
    plan = planned("deepseek-v3.2", "H200", tp=8)
    assert plan.kv is not None
    assert plan.kv.bytes_per_token == 61 * (1152 + 132)
    smaller = planned("deepseek-v3.2", "H200", tp=8, kv_dtype="fp8_e4m3")
    assert smaller.kv is not None
    assert smaller.kv.bytes_per_token < plan.kv.bytes_per_token


def test_groups_of_attention_serve_requests_of_their_own() -> None:
    options = {"enable_dp_attention": True, "dp_size": 8}
    plan = planned("deepseek-v3", device(300), tp=8, engine_options=options)
    alone = planned("deepseek-v3", device(300), tp=8)
    assert plan.capacity is not None
    assert alone.capacity is not None
    assert plan.capacity.tokens < alone.capacity.tokens
    assert plan.capacity.requests > alone.capacity.requests
    assert plan.capacity.requests % 8 == 0


def test_limits_of_requests_are_shared_by_the_groups() -> None:
    options = {"enable_dp_attention": True, "dp_size": 4, "max_running_requests": 40}
    plan = planned("deepseek-v2-lite", tp=4, context=1024, engine_options=options)
    assert plan.capacity is not None
    # Ten for each of four; and ten rows in each rank's table, and one.
    assert plan.capacity.requests == 40
    assert line(plan, "req_to_token") == 11 * (1024 + 4) * 4


def test_what_is_left_for_activations_is_looked_at() -> None:
    # 8,192 tokens want 12 GiB; half of that is the limit.
    assert "dynamic_share_tight" not in codes(planned())
    tight = planned(engine_options={"mem_fraction_static": 0.93})
    assert "dynamic_share_tight" in codes(tight)
    assert 0 <= line(tight, "activation_room") < 6 * GIB
    roomy = planned(engine_options={"mem_fraction_static": 0.88})
    assert 6 * GIB < line(roomy, "activation_room") < 12 * GIB
    assert "dynamic_share_tight" not in codes(roomy)


def test_a_dynamic_share_that_pays_for_nothing() -> None:
    plan = planned(engine_options={"mem_fraction_static": 0.99})
    assert (plan.verdict, plan.reasons[0].code) == ("does_not_fit", "dynamic_share_overdrawn")
    assert line(plan, "activation_room") < 0
    assert plan.capacity is not None
    assert plan.capacity.requests == 0  # what does not come up holds nobody
    assert codes(planned(concurrency=4, engine_options={"mem_fraction_static": 0.99}))[0] == (
        "dynamic_share_overdrawn"
    )


def test_pages() -> None:
    plan = planned(engine_options={"page_size": 64})
    assert plan.capacity is not None
    assert plan.capacity.block_size == 64
    assert plan.capacity.tokens % 64 == 0


def test_the_request_table_is_beside_the_pools() -> None:
    plan = planned(engine_options={"max_running_requests": 100})
    found = next(entry for entry in plan.ledger if entry.name == "req_to_token")
    assert found.section == "outside"
    # One row more than requests, of the context and what a drafting step may write.
    assert found.bytes % (101 * 4) == 0
    assert found.bytes >= 101 * 8192 * 4


def test_running_requests_limit() -> None:
    plan = planned(engine_options={"max_running_requests": 4}, concurrency=5)
    assert plan.verdict == "does_not_fit"
    assert plan.reasons[0].code == "max_running_requests"
    assert plan.capacity is not None
    assert plan.capacity.requests == 4


def test_too_small_a_card() -> None:
    plan = planned("llama-3.1-70b")
    assert plan.verdict == "does_not_fit"
    assert plan.capacity is not None
    assert (plan.capacity.tokens, plan.capacity.requests) == (0, 0)
    assert plan.reasons[0].hint
    assert total(plan.ledger) == plan.gpu.total_bytes


def test_given_bytes() -> None:
    plan = planned(kv_budget=131_072 * 10_000)
    assert plan.capacity is not None
    assert plan.kv is not None
    assert (plan.capacity.tokens, plan.kv.budget_low) == (10_000, None)
    assert plan.kv.allocated_bytes == 131_072 * 10_001
    with pytest.raises(UsageError, match="KV budgets"):
        planned(kv_budget=(1, 2, 3), tp=2)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"mem_fraction_statik": 0.8}, UnknownNameError, "mem_fraction_static"),
        ({"mem_fraction_static": 1.5}, UsageError, "mem_fraction_static"),
        ({"mem_fraction_static": True}, UsageError, "mem_fraction_static"),
        ({"page_size": 0}, UsageError, "page_size"),
        ({"page_size": 1, "page-size": 2}, UsageError, "page_size"),
        ({"tp_size": 2}, UsageError, "--tp"),
        ({"disable_radix_cache": "yes"}, UsageError, "disable_radix_cache"),
        ({"dp_size": 2}, UsageError, "--dp 2"),
        ({"enable_dp_attention": True}, UsageError, "dp_size"),
        ({"speculative_algorithm": "EAGLE4"}, UsageError, "EAGLE"),
        ({"mamba_ssm_dtype": "int8"}, UsageError, "float32"),
    ],
)
def test_options_that_are_wrong(options: dict[str, Any], error: type, words: str) -> None:
    with pytest.raises(error) as it:
        planned(engine_options=options)
    assert it.value.hint
    assert words in f"{it.value} {it.value.hint}"


def test_other_names_of_options() -> None:
    plan = planned(engine_options={"--mem-fraction-static": 0.7, "cuda-graph-max-bs-decode": 32})
    assert plan.engine.options["mem_fraction_static"] == 0.7
    assert plan.engine.options["cuda_graph_max_bs"] == 32


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"engine_options": {"enable_lora": True}}, "not_modelled"),
        ({"engine_options": {"speculative_algorithm": "DFLASH"}}, "not_modelled"),
        ({"engine_options": {"ep_size": 2}, "tp": 4}, "not_modelled"),
        ({"dcp": 2, "tp": 2}, "not_modelled"),
        ({"kv_dtype": "nvfp4"}, "not_modelled"),
        ({"model": "qwen3-next-80b-a3b", "engine": "sglang==0.5.6"}, "not_modelled"),
        ({"engine": "sglang==0.4.9"}, "engine_refuses"),
        ({"tp": 3}, "engine_refuses"),
        ({"engine_options": {"enable_dp_attention": True, "dp_size": 3}}, "engine_refuses"),
        ({"pp": 64}, "engine_refuses"),
    ],
)
def test_what_is_refused_by_name(changes: dict[str, Any], code: str) -> None:
    plan = planned(**changes)
    assert (plan.verdict, plan.reasons[0].code) == ("refused", code)
    assert plan.reasons[0].hint
    assert plan.engine.name == "sglang"


def test_an_option_left_as_it_is_by_default_is_taken() -> None:
    assert planned(engine_options={"enable_lora": False}).verdict == "fits"


def test_a_newer_release_is_pointed_out() -> None:
    assert "engine_newer_than_modelled" in codes(planned(engine="sglang==0.9.0"))
    assert "engine_newer_than_modelled" not in codes(planned())


@pytest.mark.parametrize("engine", ["sglang", "sglang==0.5.12"])
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
        toy(full(), window(512), architecture="GptOssForCausalLM"),
        toy(window(512), window(512), full()),
        toy(full(4, 64), full(4, 64), full(4, 64)),
    ]
)
OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "mem_fraction_static": st.floats(0.05, 0.99),
        "page_size": st.sampled_from([1, 16, 64]),
        "max_running_requests": st.integers(1, 5000),
        "max_total_tokens": st.integers(1, 10**7),
        "swa_full_tokens_ratio": st.floats(0.05, 1.0),
        "chunked_prefill_size": st.sampled_from([-1, 512, 8192]),
        "disable_radix_cache": st.booleans(),
        "disable_cuda_graph": st.booleans(),
    },
)
ARGUMENTS = st.fixed_dictionaries(
    {
        "tp": st.sampled_from([1, 2, 4]),
        "pp": st.sampled_from([1, 2]),
        "context": st.integers(1, 10**6),
        "engine_options": OPTIONS,
        "engine": st.sampled_from(["sglang==0.5.3", "sglang==0.5.12", "sglang"]),
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


@given(MODELS, st.floats(1, 300), st.floats(0, 100), ARGUMENTS, st.integers(0, 10**5))
def test_laws(model: Any, gib: float, more: float, arguments: dict[str, Any], longer: int) -> None:
    arguments["engine_options"].setdefault("mem_fraction_static", 0.8)
    small = planned(model, device(gib), advice=False, **arguments)
    large = planned(model, device(gib + more), advice=False, **arguments)
    assert small.capacity is not None
    assert large.capacity is not None
    assert small.capacity.tokens <= large.capacity.tokens
    assert small.capacity.requests <= large.capacity.requests
    arguments["engine_options"].setdefault("max_running_requests", 64)
    before = planned(model, device(gib), advice=False, **arguments)
    after = planned(
        model, device(gib), advice=False, **(arguments | {"context": arguments["context"] + longer})
    )
    assert before.capacity is not None
    assert after.capacity is not None
    assert before.capacity.requests >= after.capacity.requests


# fmt: off
NAMES = ("mem_fraction_static", "page_size", "dp_size", "ep_size", "speculative_algorithm",
         "mamba_ssm_dtype", "max_total_tokens", "attention_backend", "enable_lora", "x")
# fmt: on
VALUES = st.one_of(st.none(), st.booleans(), st.integers(-5, 10**6), st.floats(), st.text())


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
