"""vLLM's options: what is filled in, what is taken, what is sent back."""

from __future__ import annotations

from typing import Any

import pytest
from real_models import device

from kvplan.engines.vllm.history import rules_for
from kvplan.engines.vllm.settings import Settings, read_options, resolve
from kvplan.errors import (
    EngineRefusesError,
    NotModelledError,
    UnknownNameError,
    UsageError,
)

GIB = 2**30


def resolved(
    options: dict[str, Any] | None = None,
    *,
    version: str = "0.33.0",
    gib: int = 80,
    context: int = 8192,
    pp: int = 1,
) -> Settings:
    return resolve(
        options or {},
        rules_for(version),
        device(gib),
        total_bytes=gib * GIB,
        context=context,
        pp=pp,
        version=version,
    )


def test_everything_that_nobody_gives_is_filled_in_and_named() -> None:
    settings = resolved()
    assert settings.as_options() == {
        "gpu_memory_utilization": 0.92,
        "max_num_seqs": 1024,
        "max_num_batched_tokens": 8192,
        "enforce_eager": False,
        "enable_prefix_caching": True,
        "disable_hybrid_kv_cache_manager": False,
        "async_scheduling": True,
        "enable_expert_parallel": False,
    }
    assert settings.assumed == tuple(settings.as_options())


def test_what_is_given_is_taken_and_not_called_assumed() -> None:
    given = {
        "gpu_memory_utilization": 0.5,
        "max_num_seqs": 7,
        "max_num_batched_tokens": 100,
        "block_size": 32,
        "enforce_eager": True,
        "enable_prefix_caching": False,
        "disable_hybrid_kv_cache_manager": True,
        "num_gpu_blocks_override": 1000,
        "kv_cache_memory_bytes": 2**34,
        "async_scheduling": False,
        "enable_expert_parallel": True,
    }
    settings = resolved(given)
    assert settings.as_options() == given
    assert settings.assumed == ()


def test_a_whole_share_is_a_share() -> None:
    used = resolved({"gpu_memory_utilization": 1}).gpu_memory_utilization
    assert (used, type(used)) == (1.0, float)


@pytest.mark.parametrize("written", ["16GiB", 2**34, "17179869184"])
def test_a_pool_may_be_written_as_a_size(written: str | int) -> None:
    assert resolved({"kv_cache_memory_bytes": written}).kv_cache_memory_bytes == 2**34


@pytest.mark.parametrize(
    ("options", "context", "tokens", "requests"),
    [
        ({}, 1, 1024, 1024),  # 1,024 requests of one token
        ({}, 7, 7168, 1024),
        ({}, 8, 8192, 1024),
        ({}, 100_000, 8192, 1024),
        ({"max_num_seqs": 2}, 3, 6, 2),
        ({"max_num_seqs": 1}, 1, 1, 1),
        ({"max_num_batched_tokens": 100}, 8192, 100, 100),
        ({"max_num_batched_tokens": 5000}, 1, 5000, 1024),
        ({"max_num_batched_tokens": 64, "max_num_seqs": 64}, 8192, 64, 64),
        ({"max_num_batched_tokens": 64, "max_num_seqs": 63}, 8192, 64, 63),
    ],
)
def test_only_what_is_left_out_is_clamped(
    options: dict[str, int], context: int, tokens: int, requests: int
) -> None:
    settings = resolved(options, context=context)
    assert (settings.max_num_batched_tokens, settings.max_num_seqs) == (tokens, requests)


@pytest.mark.parametrize(
    "options",
    [{"max_num_seqs": 65, "max_num_batched_tokens": 64}, {"max_num_seqs": 8193}],
)
def test_more_requests_than_tokens_are_refused(options: dict[str, int]) -> None:
    with pytest.raises(EngineRefusesError, match="above max_num_batched_tokens") as raised:
        resolved(options)
    assert raised.value.hint is not None
    assert f"{options['max_num_seqs']:,}" in raised.value.hint


@pytest.mark.parametrize(
    ("version", "options", "pp", "batches"),
    [
        ("0.33.0", {}, 1, 2),
        ("0.33.0", {}, 3, 4),
        ("0.33.0", {"async_scheduling": False}, 1, 1),
        ("0.33.0", {"async_scheduling": False}, 3, 3),
        ("0.26.0", {}, 1, 2),
        ("0.25.1", {}, 1, 1),
        ("0.25.1", {}, 3, 1),
        ("0.9.0", {"async_scheduling": True}, 1, 1),
    ],
)
def test_tokens_in_flight(version: str, options: dict[str, bool], pp: int, batches: int) -> None:
    settings = resolved(options, version=version, pp=pp)
    assert settings.in_flight_tokens == batches * settings.max_num_batched_tokens


@pytest.mark.parametrize(("version", "share"), [("0.19.1", 0.9), ("0.20.0", 0.92)])
def test_the_default_share_goes_by_release(version: str, share: float) -> None:
    assert resolved(version=version).gpu_memory_utilization == share


@pytest.mark.parametrize(("version", "default"), [("0.13.0", False), ("0.14.0", True)])
def test_async_scheduling_goes_by_release(version: str, default: bool) -> None:  # noqa: FBT001
    assert resolved(version=version).async_scheduling is default


COUNTS = ("max_num_seqs", "max_num_batched_tokens", "block_size", "num_gpu_blocks_override")
FLAGS = (
    "enforce_eager",
    "enable_prefix_caching",
    "disable_hybrid_kv_cache_manager",
    "async_scheduling",
    "enable_expert_parallel",
)
NO_COUNTS = (0, -1, 2**31 + 1, 10**40, 10**5000, 1.0, "64", True, None, [1], float("nan"))
NO_SHARES: tuple[Any, ...] = (
    *(0, 0.0, -0.1, 1.0000001, 2, 10**400, "0.9", True, None, {}),
    *(float("nan"), float("inf"), float("-inf")),
)


@pytest.mark.parametrize("value", NO_COUNTS, ids=lambda value: str(type(value)))
@pytest.mark.parametrize("name", COUNTS)
def test_a_count_is_a_whole_number_in_range(name: str, value: Any) -> None:
    with pytest.raises(UsageError, match=f"{name} is a whole number from 1 to 2,147,483,648") as it:
        read_options({name: value})
    assert it.value.hint == f"Write -o {name}=64, or leave it out for vLLM's own default."
    assert len(it.value.message) < 200


@pytest.mark.parametrize("name", COUNTS)
def test_the_ends_of_a_count_are_in_range(name: str) -> None:
    assert read_options({name: 1}) == {name: 1}
    assert read_options({name: 2**31}) == {name: 2**31}


@pytest.mark.parametrize("value", NO_SHARES, ids=lambda value: str(type(value)))
def test_a_share_is_above_0_and_at_most_1(value: Any) -> None:
    with pytest.raises(UsageError, match="is a share of the card") as raised:
        read_options({"gpu_memory_utilization": value})
    assert raised.value.hint == "Write -o gpu_memory_utilization=0.92."


def test_the_ends_of_a_share_are_in_range() -> None:
    assert read_options({"gpu_memory_utilization": 1.0}) == {"gpu_memory_utilization": 1.0}
    assert read_options({"gpu_memory_utilization": 1e-9}) == {"gpu_memory_utilization": 1e-9}


@pytest.mark.parametrize("value", [0, 1, "true", None, 1.0])
@pytest.mark.parametrize("name", FLAGS)
def test_a_flag_is_true_or_false(name: str, value: Any) -> None:
    with pytest.raises(UsageError, match=f"{name} is true or false") as raised:
        read_options({name: value})
    assert raised.value.hint == f"Write -o {name}=true."


@pytest.mark.parametrize("value", [0, "0", "0GiB", -5, 2**60 + 1, 1.5, True, "much", None])
def test_a_pool_is_an_amount_of_memory(value: Any) -> None:
    with pytest.raises(UsageError):
        read_options({"kv_cache_memory_bytes": value})


def test_the_ends_of_a_pool_are_in_range() -> None:
    assert read_options({"kv_cache_memory_bytes": 1}) == {"kv_cache_memory_bytes": 1}
    assert read_options({"kv_cache_memory_bytes": 2**60}) == {"kv_cache_memory_bytes": 2**60}


@pytest.mark.parametrize(
    ("wrong", "nearest"),
    [
        ("max_num_seq", "max_num_seqs"),
        ("gpu_memory_utilisation", "gpu_memory_utilization"),
        ("speculative_conf", "speculative_config"),
        ("tensor_parallel", "tensor_parallel_size"),
    ],
)
def test_an_unknown_option_is_answered_with_the_nearest(wrong: str, nearest: str) -> None:
    with pytest.raises(UnknownNameError, match=f"no option '{wrong}'") as raised:
        read_options({wrong: 1})
    assert raised.value.hint is not None
    assert nearest in raised.value.hint


def test_an_option_like_no_other_is_answered_with_all() -> None:
    with pytest.raises(UnknownNameError) as raised:
        read_options({"zzzz" * 1000: 1})
    assert raised.value.hint is not None
    assert raised.value.hint.startswith("It knows gpu_memory_utilization, max_num_seqs, ")
    assert len(raised.value.message) < 200


@pytest.mark.parametrize(
    ("option", "flag"),
    [
        ("max_model_len", "--context"),
        ("tensor_parallel_size", "--tp"),
        ("pipeline_parallel_size", "--pp"),
        ("data_parallel_size", "--dp"),
        ("decode_context_parallel_size", "--dcp"),
        ("kv_cache_dtype", "--kv-dtype"),
        ("dtype", "--dtype"),
        ("quantization", "--weights"),
    ],
)
def test_an_argument_is_no_option(option: str, flag: str) -> None:
    with pytest.raises(UsageError, match=f"{option} is not set with -o") as raised:
        read_options({option: 1})
    assert raised.value.hint == f"Use {flag}."


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("cpu_offload_gb", 10),
        ("prefill_context_parallel_size", 2),
        ("enable_dbo", True),
        ("enable_eplb", True),
        ("disable_sliding_window", True),
    ],
)
def test_an_option_to_come_is_refused_by_name(option: str, value: Any) -> None:
    with pytest.raises(NotModelledError, match=f"does not size vLLM's {option} yet") as raised:
        read_options({option: value})
    assert raised.value.hint == "Leave it out to plan without it."


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("cpu_offload_gb", 0.0),
        ("prefill_context_parallel_size", 1),
    ],
)
def test_an_option_to_come_that_is_off_changes_nothing(option: str, value: Any) -> None:
    assert read_options({option: value}) == {}


@pytest.mark.parametrize(
    ("option", "value", "read"),
    [
        ("mamba_cache_dtype", "float32", "float32"),
        ("mamba-ssm-cache-dtype", "Float16", "float16"),
        ("--mamba-block-size", 256, 256),
        ("mamba_cache_mode", "align", "align"),
        ("use_replayssm", True, True),
        ("enable_chunked_prefill", False, False),
        ("kv_cache_dtype_skip_layers", ["0", 31], ("0", "31")),
        ("kv_cache_dtype_skip_layers", "0, sliding_window", ("0", "sliding_window")),
        ("kv_cache_dtype_skip_layers", 7, ("7",)),
        ("performance_mode", "throughput", "throughput"),
        ("cudagraph_capture_sizes", [1, 2, 4], (1, 2, 4)),
        ("cudagraph_capture_sizes", "1,2", (1, 2)),
        ("max_cudagraph_capture_size", 0, 0),
        ("cudagraph_mode", "full_and_piecewise", "FULL_AND_PIECEWISE"),
        ("limit_mm_per_prompt", {"image": 2, "video": 0}, {"image": 2, "video": 0}),
        ("limit_mm_per_prompt", "image=2,video=1", {"image": 2, "video": 1}),
        ("limit_mm_per_prompt", '{"image": {"count": 5, "width": 512}}', {"image": 5}),
        ("attention_backend", "FLASHINFER", "FLASHINFER"),
    ],
)
def test_an_option_in_any_spelling(option: str, value: Any, read: Any) -> None:
    name = option.removeprefix("--").replace("-", "_")
    assert read_options({option: value}) == {name: read}
    assert getattr(resolved({option: value}), name) == read


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("mamba_cache_dtype", "fp8"),
        ("mamba_cache_dtype", 16),
        ("mamba_cache_mode", ""),
        ("kv_cache_dtype_skip_layers", [True]),
        ("kv_cache_dtype_skip_layers", 1.5),
        ("kv_cache_dtype_skip_layers", [""]),
        ("cudagraph_capture_sizes", ["one"]),
        ("cudagraph_capture_sizes", [0]),
        ("limit_mm_per_prompt", "image"),
        ("limit_mm_per_prompt", {"image": -1}),
        ("limit_mm_per_prompt", [1]),
        ("limit_mm_per_prompt", "{"),
        ("attention_backend", "x" * 5000),
    ],
)
def test_a_value_of_the_wrong_kind_is_named(option: str, value: Any) -> None:
    with pytest.raises(UsageError, match=option) as raised:
        read_options({option: value})
    assert len(raised.value.message) < 200


def test_a_name_may_be_given_once() -> None:
    with pytest.raises(UsageError, match="max_num_seqs is given twice"):
        read_options({"max_num_seqs": 1, "max-num-seqs": 2})


def test_what_is_taken_but_sizes_nothing_is_named() -> None:
    options = {
        "cudagraph_capture_sizes": [1],
        "limit_mm_per_prompt": {"image": 1},
        "speculative_config": {"method": "mtp", "quantization": "fp8"},
    }
    assert resolved(options).unsized == (
        "limit_mm_per_prompt",
        "speculative_config.quantization",
    )
    assert resolved().unsized == ()


def test_throughput_mode_doubles_what_is_left_out() -> None:
    options: dict[str, Any] = {"performance_mode": "throughput"}
    settings = resolved(options)
    assert (settings.max_num_batched_tokens, settings.max_num_seqs) == (16384, 2048)
    settings = resolved(options | {"max_num_seqs": 8, "max_num_batched_tokens": 64})
    assert (settings.max_num_batched_tokens, settings.max_num_seqs) == (64, 8)


def test_without_chunked_prefill_a_batch_holds_the_longest_request() -> None:
    options = {"enable_chunked_prefill": False}
    assert resolved(options, context=100_000).max_num_batched_tokens == 100_000
    assert resolved(options, context=100).max_num_batched_tokens == 8192
    assert resolved(options | {"max_num_batched_tokens": 64}).max_num_batched_tokens == 64
