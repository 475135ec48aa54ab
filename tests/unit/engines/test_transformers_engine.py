"""The engine from options to verdict: what is accepted, what is refused, what it costs."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers_cases import model_of

from kvplan.engines.base import Setup
from kvplan.engines.transformers import history
from kvplan.engines.transformers.engine import Transformers
from kvplan.errors import KvplanError, NotModelledError, UnknownNameError, UsageError
from kvplan.hardware import Fact, GpuSpec
from kvplan.ledger import total
from kvplan.models.spec import ModelSpec
from kvplan.plan import Parallelism, Plan
from kvplan.planning.size import Load, size

GIB = 2**30
_COMMON = {"vocab_size": 32_000, "hidden_size": 4096, "intermediate_size": 14_336,
           "num_attention_heads": 32, "num_key_value_heads": 8, "num_hidden_layers": 32,
           "torch_dtype": "bfloat16", "max_position_embeddings": 32_768,
           "tie_word_embeddings": False}  # fmt: skip
LLAMA = model_of("llama", {**_COMMON, "model_type": "llama"})
MISTRAL = model_of("mistral", {**_COMMON, "model_type": "mistral", "sliding_window": 4096})
FALCON = model_of(
    "falcon",
    {"model_type": "falcon", "hidden_size": 8192, "num_attention_heads": 128, "num_kv_heads": 8,
     "num_hidden_layers": 1, "new_decoder_architecture": True, "vocab_size": 256,
     "torch_dtype": "bfloat16"},
)  # fmt: skip
BART = model_of(
    "bart",
    {"model_type": "bart", "d_model": 1024, "encoder_layers": 2, "decoder_layers": 2,
     "encoder_attention_heads": 16, "decoder_attention_heads": 16, "encoder_ffn_dim": 64,
     "decoder_ffn_dim": 64, "vocab_size": 256, "max_position_embeddings": 1024,
     "torch_dtype": "bfloat16"},
)  # fmt: skip
DEEPSEEK = model_of(
    "deepseek",
    {"model_type": "deepseek_v3", "vocab_size": 256, "hidden_size": 512, "intermediate_size": 64,
     "num_attention_heads": 128, "num_key_value_heads": 128, "num_hidden_layers": 2,
     "kv_lora_rank": 512, "q_lora_rank": 64, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128,
     "v_head_dim": 128, "n_routed_experts": 4, "num_experts_per_tok": 2, "n_shared_experts": 1,
     "moe_intermediate_size": 32, "first_k_dense_replace": 1, "topk_group": 1, "n_group": 1,
     "torch_dtype": "bfloat16"},
)  # fmt: skip
MAMBA = model_of(
    "mamba",
    {"model_type": "mamba", "vocab_size": 256, "hidden_size": 2560, "state_size": 16,
     "num_hidden_layers": 2, "conv_kernel": 4, "expand": 2, "torch_dtype": "bfloat16"},
)  # fmt: skip


def gpu(gib: float = 80.0) -> GpuSpec:
    return GpuSpec(
        id="test", name="test", vendor="custom", architecture="test",
        torch_total_gib=Fact(value=gib, source="test"),
    )  # fmt: skip


def planned(
    model: ModelSpec,
    *,
    context: int | str = 4096,
    concurrency: int | None = None,
    memory: float = 80.0,
    options: dict[str, Any] | None = None,
    **changes: Any,
) -> Plan:
    setup = Setup(
        model=model,
        gpu=gpu(memory),
        options=options or {},
        context=context if isinstance(context, int) else model.max_context,
        **changes,
    )
    return size(Transformers(), setup, Load(context=context, concurrency=concurrency))


def test_one_request_by_hand() -> None:
    plan = planned(LLAMA)
    assert plan.verdict == "fits"
    assert plan.kv is not None
    # 32 layers x 2 x 8 heads x 128 x 2 bytes
    assert plan.kv.bytes_per_token == 131_072
    assert plan.kv.allocated_bytes == plan.kv.storage_bytes == 4096 * 131_072


def test_the_batch_takes_what_it_takes() -> None:
    one = planned(LLAMA)
    eight = planned(LLAMA, options={"batch_size": 8, "decode_steps": 100})
    assert one.kv is not None
    assert eight.kv is not None
    assert eight.kv.allocated_bytes == 8 * 4196 * 131_072
    assert eight.engine.options["batch_size"] == 8
    assert one.engine.assumed == ("cache", "decode_steps", "batch_size")


def test_a_batch_that_was_asked_for_is_held_as_far_as_it_fits() -> None:
    plan = planned(LLAMA, concurrency=1000)
    assert plan.verdict == "does_not_fit"
    assert plan.capacity is not None
    assert plan.kv is not None
    held = plan.capacity.requests
    assert 0 < held < 1000
    assert plan.kv.allocated_bytes == held * plan.kv.bytes_per_request
    assert plan.reasons[0].code == "kv_cache_full"
    assert min(line.bytes for line in plan.ledger) >= 0


def test_its_own_limit_is_the_batch() -> None:
    plan = planned(LLAMA, concurrency=10, options={"batch_size": 4})
    assert plan.verdict == "does_not_fit"
    assert plan.reasons[0].code == "batch_size"
    assert plan.reasons[0].hint == "-o batch_size=10"
    assert plan.capacity is not None
    assert plan.capacity.requests == 4


def test_a_given_batch_is_held_whole_or_not_at_all() -> None:
    """max_context is the longest for that batch, so that requests end where it ends."""
    given = {"batch_size": 8}
    found = planned(LLAMA, memory=24, options=given).capacity
    assert found is not None
    longest = found.max_context
    assert 4096 < longest < 32_768
    for context, held in ((longest, 8), (longest + 1, 0)):
        plan = planned(LLAMA, memory=24, context=context, options=given)
        assert plan.capacity is not None
        assert plan.capacity.requests == held
        assert plan.verdict == ("fits" if held else "does_not_fit")
        assert plan.capacity.max_context == longest


def test_replicas_share_the_requests() -> None:
    plan = planned(LLAMA, concurrency=8, parallelism=Parallelism(dp=4))
    assert plan.engine.options["batch_size"] == 2


def test_views_are_a_line_of_their_own() -> None:
    plan = planned(MISTRAL, context=8192)
    lines = {line.name: line.bytes for line in plan.ledger}
    assert lines["kv_cache"] == 4095 * 131_072
    assert lines["kv_cache_views"] == (8192 - 4095) * 131_072
    assert plan.kv is not None
    assert plan.kv.storage_bytes == 8192 * 131_072
    assert plan.kv.bytes_per_token == 0
    decoded = planned(MISTRAL, context=8192, options={"decode_steps": 1})
    assert decoded.kv is not None
    assert decoded.kv.storage_bytes == 4096 * 131_072
    # The prompt's views were there before.
    assert {line.name: line.bytes for line in decoded.ledger}["kv_cache_views"] > 0


def test_a_static_cache_is_made_for_its_length() -> None:
    plan = planned(LLAMA, options={"cache": "StaticCache", "max_cache_len": 5000})
    assert plan.kv is not None
    assert plan.kv.allocated_bytes == 5000 * 131_072
    short = planned(LLAMA, options={"cache": "static", "max_cache_len": 64})
    assert short.verdict == "does_not_fit"
    assert short.kv is not None
    assert short.kv.allocated_bytes == 64 * 131_072
    assert short.reasons[0].hint == "-o max_cache_len=4096"
    longest = planned(
        LLAMA, context="auto", options={"cache": "StaticCache", "max_cache_len": 64,
                                        "decode_steps": 4},
    )  # fmt: skip
    assert longest.workload.context == 60


def test_falcon_repeats_its_heads() -> None:
    plan = planned(FALCON, context=1)
    assert plan.kv is not None
    assert plan.kv.allocated_bytes == 2 * 128 * 64 * 2


@pytest.mark.parametrize(
    ("version", "bytes_per_token"),
    [("4.57.6", 81_920), ("5.14.1", 81_920), ("5.15.0", 1152), ("5.24.0", 1152)],
)
def test_latents_are_kept_since_5_15(version: str, bytes_per_token: int) -> None:
    plan = planned(DEEPSEEK, context=64, version=version)
    assert plan.kv is not None
    assert plan.kv.bytes_per_token == 2 * bytes_per_token


def test_encoder_decoder() -> None:
    plan = planned(BART, context=7, options={"encoder_len": 300})
    assert plan.engine.options["cache"] == "EncoderDecoderCache"
    assert plan.kv is not None
    assert plan.kv.allocated_bytes == 2 * 2 * 16 * 64 * 2 * 307
    whole = planned(BART, context=7)
    assert whole.kv is not None
    assert whole.kv.allocated_bytes == 2 * 2 * 16 * 64 * 2 * (7 + 1024)


@pytest.mark.parametrize(
    ("model", "options", "changes", "code"),
    [
        (MISTRAL, {"cache": "QuantizedCache"}, {}, "engine_refuses"),
        (MAMBA, {"cache": "QuantizedCache"}, {}, "engine_refuses"),
        (BART, {"cache": "QuantizedCache"}, {}, "engine_refuses"),
        (BART, {"encoder_len": 2000}, {}, "engine_refuses"),
        (LLAMA, {"cache": "EncoderDecoderCache"}, {}, "engine_refuses"),
        (LLAMA, {"cache": "MiniMaxCache"}, {}, "engine_refuses"),
        (LLAMA, {"cache": "HybridCache"}, {}, "engine_refuses"),
        (LLAMA, {"cache": "SlidingWindowCache"}, {"version": "5.3.0"}, "engine_refuses"),
        (LLAMA, {"nbits": 3}, {}, "engine_refuses"),
        (LLAMA, {"axis": 1}, {}, "engine_refuses"),
        (LLAMA, {"quant_backend": "fp8"}, {"version": "5.20.2"}, "engine_refuses"),
        (LLAMA, {}, {"kv_dtype": "fp8"}, "engine_refuses"),
        (LLAMA, {}, {"version": "4.56.0"}, "engine_refuses"),
        (LLAMA, {}, {"parallelism": Parallelism(tp=3)}, "engine_refuses"),
        (LLAMA, {}, {"parallelism": Parallelism(tp=2, dcp=2)}, "engine_refuses"),
        (LLAMA, {}, {"parallelism": Parallelism(pp=64)}, "engine_refuses"),
        (DEEPSEEK, {}, {"parallelism": Parallelism(tp=2)}, "not_modelled"),
        (MAMBA, {}, {"version": "5.4.0"}, "not_modelled"),
        (LLAMA, {"cache": "offloaded"}, {}, "not_modelled"),
        (LLAMA, {"num_beams": 4}, {}, "not_modelled"),
    ],
)
def test_refused(
    model: ModelSpec, options: dict[str, Any], changes: dict[str, Any], code: str
) -> None:
    plan = planned(model, options=options, **changes)
    assert plan.verdict == "refused"
    assert plan.reasons[0].code == code


@pytest.mark.parametrize(
    ("options", "error", "hint"),
    [
        ({"batchsize": 4}, UnknownNameError, "Did you mean batch_size, cache, backend?"),
        ({"batch_size": 0}, UsageError, "Write -o batch_size=4, or leave it out."),
        ({"batch_size": True}, UsageError, None),
        (
            {"cache": "DynamicCach"},
            UsageError,
            "Did you mean DynamicCache, StaticCache, HybridCache?",
        ),
        (
            {"max_cache_len": 64, "cache": "DynamicCache"},
            UsageError,
            "Add -o cache=StaticCache, or leave it out.",
        ),
        ({"max_cache_len": 64, "nbits": 4}, UsageError, None),
        ({"encoder_len": 64}, UsageError, "Leave it out."),
        ({"dtype": "float16"}, UsageError, "Use --dtype."),
        ({"nbits": 4, "quant_backend": "fp8"}, UsageError, None),
        ({"axis": 0, "axis_key": 0}, UsageError, "Keep one of the two."),
    ],
)
def test_bad_options(options: dict[str, Any], error: type[KvplanError], hint: str | None) -> None:
    with pytest.raises(error) as caught:
        planned(LLAMA, options=options)
    assert hint is None or caught.value.hint == hint


def test_names_of_older_releases_and_of_generate() -> None:
    assert planned(LLAMA, options={"cache_implementation": "static"}).engine.options["cache"] == (
        "StaticCache"
    )
    old = planned(LLAMA, options={"cache": "HybridCache"}, version="4.57.6")
    assert old.engine.options["cache"] == "StaticCache"
    packed = planned(LLAMA, options={"cache": "HQQQuantizedCache", "nbits": 8})
    assert packed.engine.options["quant_backend"] == "hqq"
    assert planned(LLAMA, options={"nbits": 2}).engine.options["cache"] == "QuantizedCache"


def test_a_length_alone_means_the_cache_that_has_one() -> None:
    alone = planned(LLAMA, options={"max_cache_len": 5000})
    named = planned(LLAMA, options={"max_cache_len": 5000, "cache": "StaticCache"})
    assert alone.engine.options["cache"] == "StaticCache"
    assert "cache" in alone.engine.assumed
    assert "cache" not in named.engine.assumed
    assert alone.kv == named.kv


def test_a_packer_that_would_reject_the_batch_is_a_refusal() -> None:
    plan = planned(LLAMA, context=250, concurrency=1, options={"axis": -1, "nbits": 4})
    assert plan.verdict == "refused"
    assert "does not divide 2000" in plan.reasons[0].message


def test_drafts_are_not_modelled() -> None:
    assert Transformers().draft_of({"batch_size": 2}) is None
    with pytest.raises(NotModelledError):
        Transformers().draft_of({"assistant_model": "a/b"})


def test_bytes_that_were_given_are_planned_exactly() -> None:
    plan = planned(LLAMA, kv_budget=(10 * GIB,))
    assert plan.capacity is not None
    assert plan.capacity.requests == 10 * GIB // (4096 * 131_072)
    assert plan.capacity.tokens_low is None
    assert total(plan.ledger) == 10 * GIB
    assert {line.name for line in plan.ledger} == {"kv_cache", "unused"}


def test_stages_share_the_layers_and_the_fullest_counts() -> None:
    plan = planned(LLAMA, parallelism=Parallelism(pp=2))
    assert plan.kv is not None
    assert plan.kv.allocated_bytes == 4096 * 131_072 // 2
    assert total(plan.ledger) == 80 * GIB
    budgets = planned(LLAMA, parallelism=Parallelism(pp=2), kv_budget=(GIB, 10 * GIB))
    assert budgets.kv is not None
    assert budgets.kv.budget_bytes == GIB
    with pytest.raises(UsageError):
        planned(LLAMA, parallelism=Parallelism(pp=2), kv_budget=(GIB,) * 3)


def test_ranks_split_heads_and_keep_the_embedding() -> None:
    whole = {line.name: line.bytes for line in planned(LLAMA).ledger}
    half = planned(LLAMA, parallelism=Parallelism(tp=2))
    lines = {line.name: line.bytes for line in half.ledger}
    assert lines["weights.embedding"] == whole["weights.embedding"]
    assert lines["weights.mlp"] * 2 == whole["weights.mlp"]
    assert lines["kv_cache"] * 2 == whole["kv_cache"]
    assert "tp_plan_assumed" in {reason.code for reason in half.reasons}


def test_history_is_dated_and_sourced() -> None:
    assert [change.since for change in history.CHANGES] == sorted(
        change.since for change in history.CHANGES
    )
    assert all(change.source for change in history.CHANGES)
    assert history.is_newer_than_modelled("6.0.0")
    assert not history.is_newer_than_modelled("5.24.9")
    assert "engine_newer_than_modelled" in {
        reason.code for reason in planned(LLAMA, version="5.99.0").reasons
    }


MODELS = st.sampled_from([LLAMA, MISTRAL, FALCON, BART, DEEPSEEK, MAMBA])
STEPS = st.integers(0, 300)
CACHES = st.sampled_from([{}, {"cache": "StaticCache"}])


@given(model=MODELS, cache=CACHES, steps=STEPS, context=st.integers(1, 30_000),
       memory=st.floats(0.1, 200))  # fmt: skip
def test_the_ledger_sums_to_the_device(
    model: ModelSpec, cache: dict[str, Any], steps: int, context: int, memory: float
) -> None:
    plan = planned(model, context=context, memory=memory, options={**cache, "decode_steps": steps})
    assert total(plan.ledger) == round(memory * GIB)
    assert plan.verdict == "does_not_fit" or min(line.bytes for line in plan.ledger) >= 0


@given(model=MODELS, cache=CACHES, lengths=st.tuples(st.integers(1, 20_000), st.integers(1, 5000)),
       memories=st.tuples(st.floats(1, 100), st.floats(0, 100)))  # fmt: skip
def test_more_memory_holds_more_and_longer_requests_fewer(
    model: ModelSpec,
    cache: dict[str, Any],
    lengths: tuple[int, int],
    memories: tuple[float, float],
) -> None:
    (context, more), (memory, extra) = lengths, memories

    def held(length: int, gib: float) -> int:
        plan = planned(model, context=length, memory=gib, options=cache)
        assert plan.capacity is not None
        return plan.capacity.requests

    here = held(context, memory)
    assert held(context, memory + extra) >= here
    assert held(context + more, memory) <= here


@given(
    options=st.dictionaries(
        st.sampled_from(["cache", "batch_size", "max_cache_len", "nbits", "q_group_size",
                         "residual_length", "quant_backend", "axis", "decode_steps", "nonsense"]),
        st.one_of(st.integers(-3, 300), st.text(max_size=8), st.none(), st.booleans(),
                  st.sampled_from(["StaticCache", "QuantizedCache", "hqq", "quanto", "fp8"])),
        max_size=5,
    ),
    model=MODELS,
)  # fmt: skip
def test_nothing_raises_but_kvplan_errors(options: dict[str, Any], model: ModelSpec) -> None:
    try:
        plan = planned(model, options=options)
    except KvplanError:
        return
    assert plan.verdict in ("fits", "does_not_fit", "refused")
