"""Ollama: what it fills in, and the server it starts."""

from __future__ import annotations

from typing import Any

import pytest

import kvplan
from kvplan.api import read_spec
from kvplan.engines.ollama import defaults, history
from kvplan.engines.ollama.options import ALIASES, READERS, read_options
from kvplan.errors import EngineRefusesError, UsageError
from kvplan.ledger import total
from kvplan.plan import Plan
from kvplan.units import GIB

LLAMA = "meta-llama/Llama-3.1-8B-Instruct"
TOKEN = 32 * 2 * 8 * 128 * 2


def size(gpu: str, options: dict[str, Any] | None = None, model: str = LLAMA, **more: Any) -> Plan:
    asked: dict[str, Any] = {"weights": "gguf:Q4_K_M", "engine": "ollama", "offline": True, **more}
    return kvplan.size(model, gpu, engine_options=options or {}, **asked)


@pytest.mark.parametrize(
    ("gib", "tokens"), [(0, 4096), (22.9, 4096), (23, 32_768), (46.9, 32_768), (47, 262_144)]
)
def test_the_context_by_memory(gib: float, tokens: int) -> None:
    assert defaults.default_context(round(gib * GIB)) == tokens


@pytest.mark.parametrize(
    ("gpu", "tokens"),
    [("RTX 3060", 4096), ("RTX 4090", 32_768), ("H100", 131_072), ("cpu:64GiB", 4096)],
)
def test_a_plan_takes_it_where_nobody_asks(gpu: str, tokens: int) -> None:
    plan = size(gpu)
    assert plan.workload.context == tokens  # the model's own maximum at most
    assert plan.engine.options["num_ctx"] == tokens
    assert "num_ctx" in plan.engine.assumed
    assert "num_ctx_by_memory" in [reason.code for reason in plan.reasons]


def test_a_context_that_was_asked_for_is_num_ctx() -> None:
    assert size("RTX 4090", context=8192).engine.options["num_ctx"] == 8192
    assert size("RTX 4090", {"num_ctx": 10_000}).engine.options["n_ctx"] == 10_240


def test_parallel_requests_have_a_context_each() -> None:
    plan = size("RTX 4090", {"num_ctx": 8192, "num_parallel": 3})
    assert plan.kv is not None
    assert plan.kv.allocated_bytes == 3 * 8192 * TOKEN
    assert plan.capacity is not None
    assert plan.capacity.requests == 3
    assert plan.engine.options["n_ctx"] == 3 * 8192
    assert total(plan.ledger) == plan.gpu.total_bytes


def test_one_request_at_a_time_by_default_and_for_some_architectures() -> None:
    plan = size("RTX 4090", context=4096, concurrency=2)
    assert plan.verdict == "does_not_fit"
    assert plan.reasons[0].code == "slots_full"
    assert "num_parallel" in (plan.reasons[0].hint or "")
    alone = size("H100", {"num_parallel": 4}, model="Qwen/Qwen3-VL-8B-Instruct", context=4096)
    assert alone.engine.options["num_parallel"] == 1


def test_a_quantized_cache_is_both_halves() -> None:
    plan = size("RTX 4090", {"num_ctx": 8192, "kv_cache_type": "q8_0"})
    assert plan.kv is not None
    assert plan.kv.allocated_bytes == 8192 * TOKEN * 34 // 64
    assert (
        size("RTX 4090", {"kv_cache_type": "q4_0", "flash_attention": False}).verdict == "refused"
    )


@pytest.mark.parametrize(
    ("cells", "predicted", "free", "batch"),
    [
        (4096, 5 * GIB, 20 * GIB, 512),
        (4097, 5 * GIB, 20 * GIB, 1024),
        (32_768, 5 * GIB, 20 * GIB, 1024),
        (32_769, 5 * GIB, 20 * GIB, 2048),
        (32_769, 13 * GIB, 20 * GIB, 1024),  # above 60 %, below 75 %
        (32_769, 15 * GIB, 20 * GIB, 1024),  # exactly 75 %, and 768 MiB below 80 %
        (32_769, 16 * GIB, 20 * GIB, 512),
        (32_769, 0, 20 * GIB, 2048),  # nothing is known
    ],
)
def test_the_batch_by_context_and_headroom(
    cells: int, predicted: int, free: int, batch: int
) -> None:
    assert (
        defaults.default_batch(cells, predicted, free, flash_attn=True, smallest_gpu=None) == batch
    )


@pytest.mark.parametrize(
    ("cells", "gib", "batch"), [(4096, 8, 512), (8192, 8, 256), (8192, 9, 512)]
)
def test_the_batch_on_cuda_without_flash_attention(cells: int, gib: int, batch: int) -> None:
    found = defaults.default_batch(cells, GIB, GIB, flash_attn=False, smallest_gpu=gib * GIB)
    assert found == batch


def test_the_prediction_is_a_textbook_formula() -> None:
    spec = read_spec(LLAMA, offline=True)
    assert defaults.predicted_bytes(spec, 1000, 8192) == 1000 + 8192 * TOKEN


def test_layers_are_left_to_fit_unless_num_gpu_says() -> None:
    plan = size("RTX 3060", model="meta-llama/Llama-3.1-70B-Instruct", context=4096)
    assert plan.verdict == "fits"
    assert 0 < plan.engine.options["n_gpu_layers"] < 81
    assert size("RTX 3060", {"num_gpu": 0}, context=4096).devices[0].cache_bytes == 0
    whole = size(
        "RTX 3060", {"num_gpu": 99}, model="meta-llama/Llama-3.1-70B-Instruct", context=4096
    )
    assert whole.verdict == "does_not_fit"


def test_names_of_the_environment_and_of_requests() -> None:
    assert read_options({"OLLAMA_NUM_PARALLEL": 2, "num-ctx": 4096}) == {
        "num_parallel": 2, "num_ctx": 4096,
    }  # fmt: skip
    assert set(ALIASES.values()) <= set(READERS)
    with pytest.raises(UsageError, match="no option 'num_ctxx'"):
        read_options({"num_ctxx": 1})
    with pytest.raises(UsageError, match="given twice"):
        read_options({"num_ctx": 1, "OLLAMA_CONTEXT_LENGTH": 2})
    with pytest.raises(UsageError, match="num_gpu"):
        read_options({"num_gpu": -2})


@pytest.mark.parametrize(
    ("version", "build"),
    [("0.30.0", "b9452"), ("0.30.3", "b9479"), ("0.32.14", "b10434"), ("0.33.0", "b10488"),
     ("1.0", "b10488")],
)  # fmt: skip
def test_builds_by_release(version: str, build: str) -> None:
    assert history.build_of(version) == build
    assert (
        size("H100", context=4096, engine=f"ollama=={version}").engine.options["llama.cpp"] == build
    )


def test_releases_before_llama_server_are_refused() -> None:
    with pytest.raises(EngineRefusesError, match="engine of its own"):
        history.build_of("0.15.5")
    assert size("H100", context=4096, engine="ollama==0.13").verdict == "refused"
    newer = size("H100", context=4096, engine="ollama==9.0")
    assert "engine_newer_than_modelled" in [reason.code for reason in newer.reasons]
