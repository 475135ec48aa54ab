"""The line that realises a plan, and that reading it back plans the same."""

from __future__ import annotations

import shlex
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvplan import api
from kvplan.cli.request import Request, onto
from kvplan.engines.launch import Asked
from kvplan.engines.vllm.command_emit import emit
from kvplan.engines.vllm.command_read import read_text
from kvplan.errors import UsageError
from kvplan.plan import Plan

MODEL = "Qwen/Qwen3-8B"
LONG = {
    "-T": "--tensor-parallel-size",
    "-P": "--pipeline-parallel-size",
    "-D": "--data-parallel-size",
    "-U": "--gpu-memory-utilization",
    "-S": "--max-num-seqs",
}


def planned(request: Request) -> Plan:
    assert request.model is not None
    return api.size(
        request.model,
        request.gpu,
        engine=request.engine,
        tp=request.tp,
        pp=request.pp,
        dp=request.dp,
        context=request.context,
        weights=request.weights,
        kv_dtype=request.kv_dtype,
        dtype=request.dtype,
        engine_options=dict(request.options),
        offline=True,
        advice=False,
    )


def emitted(request: Request) -> str:
    asked = Asked(
        model=request.model or "",
        weights=request.weights,
        kv_dtype=request.kv_dtype,
        dtype=request.dtype,
        options=request.options,
    )
    return emit(planned(request), asked)


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({}, "--max-model-len 40960"),
        ({"context": 8192, "tp": 2, "pp": 2, "dp": 2},
         "--max-model-len 8192 -T 2 -P 2 -D 2"),
        ({"context": 8192, "kv_dtype": "fp8", "dtype": "float16", "weights": "fp8"},
         "--max-model-len 8192 --quantization fp8 --kv-cache-dtype fp8 --dtype float16"),
        ({"context": 8192, "options": {"gpu_memory_utilization": 0.92, "enforce_eager": False}},
         "--max-model-len 8192"),
        ({"context": 8192, "options": {"gpu-memory-utilization": 0.9, "enforce_eager": True,
                                       "enable_prefix_caching": False, "max_num_seqs": 8}},
         "--max-model-len 8192 -U 0.9 --enforce-eager --no-enable-prefix-caching -S 8"),
        ({"context": 8192, "options": {"usage_context": "llm"}},
         "--max-model-len 8192 --max-num-seqs 1024 --max-num-batched-tokens 16384"),
        ({"context": 8192, "options": {"cudagraph_mode": "full"}},
         "--max-model-len 8192 --compilation-config '{\"cudagraph_mode\": \"FULL\"}'"),
        ({"context": 8192, "options": {"kv_cache_memory_bytes": "2GiB"}},
         "--max-model-len 8192 --kv-cache-memory-bytes 2147483648"),
        ({"context": 8192, "options": {"cudagraph_capture_sizes": [1, 2]}},
         "--max-model-len 8192 --cudagraph-capture-sizes 1 2"),
    ],
)  # fmt: skip
def test_only_what_differs_is_written(changes: dict[str, Any], line: str) -> None:
    written = emitted(Request(model=MODEL, gpu="H100", **changes))
    expected = [LONG.get(word, word) for word in shlex.split(f"vllm serve {MODEL} {line}")]
    assert sorted(shlex.split(written)) == sorted(expected)
    assert written.startswith(f"vllm serve {MODEL} ")


def test_auto_writes_the_length_that_fits() -> None:
    request = Request(model=MODEL, gpu="RTX 4090", context="auto")
    plan = planned(request)
    assert plan.capacity is not None
    assert f"--max-model-len {plan.capacity.max_context}" in emitted(request)


def test_a_revision_and_a_pool_of_given_size() -> None:
    plan = planned(Request(model=MODEL, gpu="H100", context=4096))
    asked = Asked(model=f"{MODEL}@v1", kv_budget=(2**30,), options={"kv_cache_memory_bytes": 1})
    assert emit(plan, asked) == (
        f"vllm serve {MODEL} --revision v1 --max-model-len 4096 --kv-cache-memory-bytes 1073741824"
    )


def test_the_old_engine_is_chosen_by_a_variable() -> None:
    request = Request(
        model=MODEL, gpu="H100", engine="vllm==0.9.2", context=4096, options={"use_v1": False}
    )
    assert emitted(request) == f"VLLM_USE_V1=0 vllm serve {MODEL} --max-model-len 4096"


def test_a_length_above_the_models_own_needs_a_variable() -> None:
    request = Request(model=MODEL, gpu="H100", context=50_000)
    assert emitted(request) == (
        f"VLLM_ALLOW_LONG_MAX_MODEL_LEN=1 vllm serve {MODEL} --max-model-len 50000"
    )


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (Asked(model="-"), "has no name"),
        (Asked(model=MODEL, weights="awq"), "does not make awq weights"),
        (Asked(model=MODEL, kv_budget=(1, 2)), "every rank the same memory"),
    ],
)
def test_what_no_line_can_say(asked: Asked, message: str) -> None:
    plan = planned(Request(model=MODEL, gpu="H100", context=4096))
    with pytest.raises(UsageError, match=message) as raised:
        emit(plan, asked)
    assert raised.value.hint


REQUESTS = st.builds(
    Request,
    model=st.just(MODEL),
    gpu=st.sampled_from(["H100", "L4", "A100-SXM-80GB", "B200"]),
    engine=st.sampled_from(["vllm", "vllm==0.11.0", "vllm==0.20.0"]),
    tp=st.sampled_from([1, 2, 8]),
    pp=st.sampled_from([1, 2]),
    dp=st.sampled_from([1, 3]),
    context=st.none() | st.just("auto") | st.integers(1, 40960),
    weights=st.sampled_from(["auto", "fp8"]),
    kv_dtype=st.sampled_from(["auto", "fp8"]),
    options=st.fixed_dictionaries(
        {},
        optional={
            "gpu_memory_utilization": st.sampled_from([0.5, 0.9, 0.92]),
            "max_num_seqs": st.integers(1, 2048),
            "max_num_batched_tokens": st.integers(2048, 32768),
            "enforce_eager": st.booleans(),
            "enable_prefix_caching": st.booleans(),
            "usage_context": st.sampled_from(["serve", "llm", "other"]),
            "performance_mode": st.sampled_from(["balanced", "throughput"]),
            "limit_mm_per_prompt": st.just({"image": 2}),
            "kv_cache_dtype_skip_layers": st.just("0,3"),
        },
    ),
)


@settings(max_examples=60)
@given(REQUESTS)
def test_reading_the_line_back_plans_the_same(request: Request) -> None:
    plan = planned(request)
    if plan.verdict == "refused":
        return
    command = read_text(emitted(request), lambda _name: {})
    bare = Request(model=None, gpu=request.gpu, engine=request.engine)
    read, remarks = onto(bare, command, lambda _name: False)
    again = planned(
        Request(**{**{f: getattr(read, f) for f in read.__slots__}, "weights": request.weights})
    )
    assert remarks == command.remarks == ()
    assert (again.capacity, again.kv, again.verdict) == (plan.capacity, plan.kv, plan.verdict)
    assert again.workload.context == plan.workload.context
