"""`--emit` fed back to `--from-command`: 200 random plans come out the same, whole.

Drawn with a fixed seed, so that a failure is the same failure again. What is not compared is what a
command can't say and a plan only notes: which of its options were given and which filled in.
"""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import Any

import pytest
import yaml

from kvplan import api
from kvplan.cli import emission, from_command
from kvplan.cli.request import Request, onto
from kvplan.engines.docker import GPUS_PER_NODE
from kvplan.errors import UsageError
from kvplan.plan import Plan

PLANS = 200
MODELS = (
    "Qwen/Qwen3-8B",
    "meta-llama/Llama-3.1-8B-Instruct",
    "meta-llama/Llama-3.1-70B-Instruct",
    "Qwen/Qwen3-30B-A3B",
    "Qwen/Qwen3-Next-80B-A3B-Instruct",
    "Qwen/Qwen3-8B-FP8",
    "Qwen/Qwen2.5-7B-Instruct-AWQ",
    "google/gemma-3-27b-it",
    "deepseek-ai/DeepSeek-V2-Lite",
    "deepseek-ai/DeepSeek-V3.2",
    "openai/gpt-oss-20b",
    "mistralai/Mistral-7B-Instruct-v0.1",
    "ibm-granite/granite-4.0-h-tiny",
)
GPUS = ("H100", "H200", "B200", "A100-SXM-80GB", "L40S", "L4", "RTX 4090", "custom:48GiB")
ENGINES = ("vllm", "vllm==0.33.0", "vllm==0.20.0", "vllm==0.14.0", "vllm==0.11.0", "vllm==0.9.2")
KV_DTYPES = ("auto", "auto", "auto", "fp8", "fp8_e4m3", "bfloat16")
OPTIONS: dict[str, tuple[Any, ...]] = {
    "gpu_memory_utilization": (0.5, 0.85, 0.9, 0.92, 0.95, "0.8"),
    "max_num_seqs": (1, 16, 256, 1024, "64"),
    "max_num_batched_tokens": (2048, 8192, 16384),
    "block_size": (16, 32, 64, 128),
    "enforce_eager": (True, False, "true"),
    "enable_prefix_caching": (True, False),
    "enable_chunked_prefill": (True,),
    "disable_hybrid_kv_cache_manager": (True, False),
    "num_gpu_blocks_override": (4000,),
    "kv_cache_memory_bytes": (2**33, "10GiB"),
    "async_scheduling": (True, False),
    "enable_expert_parallel": (True, False),
    "performance_mode": ("balanced", "throughput"),
    "usage_context": ("serve", "llm"),
    "mamba_cache_dtype": ("float32",),
    "kv_cache_dtype_skip_layers": ("0,1",),
    "cudagraph_mode": ("full", "none"),
    "cudagraph_capture_sizes": ([1, 2, 4, 8],),
    "max_cudagraph_capture_size": (128,),
    "limit_mm_per_prompt": ({"image": 2}, "image=1"),
    "attention_backend": ("FLASHINFER",),
    "speculative_config": (
        {"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_max": 3},
        '{"method": "mtp", "num_speculative_tokens": 1}',
        {"model": "Qwen/Qwen3-0.6B", "num_speculative_tokens": 3, "method": "draft_model"},
    ),
    "spec_tokens": (2,),
}
# Left out of a line where they are what the engine does anyway.
LEFT_OUT = {
    "gpu_memory_utilization",
    "enforce_eager",
    "disable_hybrid_kv_cache_manager",
    "enable_expert_parallel",
    "performance_mode",
    # Of another door its defaults are written out.
    "max_num_seqs",
    "max_num_batched_tokens",
    "usage_context",
}


CHART_FLAGS = {
    "maxModelLen": "--max-model-len",
    "dtype": "--dtype",
    "tensorParallelSize": "--tensor-parallel-size",
    "maxNumSeqs": "--max-num-seqs",
    "gpuMemoryUtilization": "--gpu_memory_utilization",
}


def drawn(random: random.Random) -> Request:
    names = random.sample(sorted(OPTIONS), random.choice((0, 1, 2, 3, 4)))
    tp = random.choice((1, 1, 2, 4, 8))
    return Request(
        model=random.choice(MODELS),
        gpu=random.choice(GPUS),
        engine=random.choice(ENGINES),
        tp=tp,
        pp=random.choice((1, 1, 1, 2)),
        dp=random.choice((1, 1, 1, 2, 3)),
        dcp=random.choice((1, 1, 1, 2)) if tp > 1 else 1,
        context=random.choice((None, "auto", 1000, 8192, 32768, 200_000)),
        concurrency=random.choice((None, 1, 64)),
        weights=random.choice(("auto", "auto", "auto", "fp8")),
        kv_dtype=random.choice(KV_DTYPES),
        dtype=random.choice(("auto", "auto", "bfloat16", "float16")),
        options={name: random.choice(OPTIONS[name]) for name in names},
        offline=True,
    )


def planned(request: Request) -> Plan:
    assert request.model is not None
    return api.size(
        request.model,
        request.gpu,
        engine=request.engine,
        tp=request.tp,
        pp=request.pp,
        dp=request.dp,
        dcp=request.dcp,
        context=request.context,
        concurrency=request.concurrency,
        weights=request.weights,
        kv_dtype=request.kv_dtype,
        dtype=request.dtype,
        kv_budget=request.kv_budget,
        engine_options=dict(request.options),
        offline=True,
        advice=False,
    )


def read_back(line: str, request: Request, *, dp: int | None = None) -> Plan:
    """The plan of the line, with what a line can't say: the GPU and the requests to hold.

    ``dp`` counts pods, which the line of one does not say either.
    """
    command = from_command.read(line)
    bare = Request(
        model=None,
        gpu=request.gpu,
        engine=request.engine,
        concurrency=request.concurrency,
        offline=True,
    )
    read, remarks = onto(bare, command, lambda name: name == "engine" and not command.version)
    assert (*command.remarks, *remarks) == ()
    return planned(from_command.with_weights(replace(read, dp=dp or read.dp), command))


def whole(plan: Plan) -> dict[str, Any]:
    """Everything in it, but for which options were given, and the door whose defaults they are."""
    found = plan.model_dump(mode="json")
    options = {k: v for k, v in found["engine"]["options"].items() if k != "usage_context"}
    found["engine"] |= {"assumed": None, "options": options}
    return found


def drawn_plans(seed: int) -> list[tuple[Request, Plan, str]]:
    """Configurations that can be started, with their plan and their line."""
    source, found = random.Random(seed), []  # noqa: S311
    while len(found) < PLANS:
        request = drawn(source)
        try:
            plan = planned(request)
            if plan.verdict != "refused" and plan.capacity and plan.capacity.max_context:
                found.append((request, plan, emission.written(plan, request, "vllm")))
        except UsageError:
            continue  # an argument that makes no sense together with another
    return found


@pytest.fixture(scope="module")
def plans() -> list[tuple[Request, Plan, str]]:
    return drawn_plans(20261129)


def test_the_line_plans_the_same(plans: list[tuple[Request, Plan, str]]) -> None:
    for request, plan, line in plans:
        again = read_back(line, request)
        assert whole(again) == whole(plan), line
        assert set(plan.engine.assumed) ^ set(again.engine.assumed) <= LEFT_OUT, line


@pytest.mark.parametrize("model", ["Qwen/Qwen3-8B", "Qwen/Qwen3-Next-80B-A3B-Instruct"])
def test_a_pool_of_given_bytes_is_the_same_pool(model: str) -> None:
    """``--kv-budget`` becomes an option of vLLM's, which plans the rest of the memory, too."""
    request = Request(
        model=model, gpu="H200", tp=2, context=8192, kv_budget=16 * 2**30, offline=True
    )
    plan = planned(request)
    again = read_back(emission.written(plan, request, "vllm"), request)
    assert again.capacity == plan.capacity


def test_the_container_plans_the_same(plans: list[tuple[Request, Plan, str]]) -> None:
    """What one machine has no room for is refused; all else is read back by `docker run`'s line."""
    for request, plan, _ in plans:
        if plan.gpu.count > GPUS_PER_NODE:
            with pytest.raises(UsageError, match="runs on one machine"):
                emission.written(plan, request, "docker")
            continue
        line = emission.written(plan, request, "docker")
        again = read_back(line, replace(request, engine="vllm"))
        assert whole(again) == whole(plan), line


def started_by_the_chart(values: str) -> tuple[str, int]:
    """The container that helm/templates/deployment-vllm-multi.yaml makes of the values."""
    (spec,) = yaml.safe_load(values)["servingEngineSpec"]["modelSpec"]
    config = spec["vllmConfig"]
    words = ["vllm", "serve", spec["modelURL"], "--host", "localhost", "--port", "8000"]
    if "enableChunkedPrefill" in config:
        words.append(f"--{'' if config['enableChunkedPrefill'] else 'no-'}enable-chunked-prefill")
    words.append(f"--{'' if config.get('enablePrefixCaching') else 'no-'}enable-prefix-caching")
    for name, flag in CHART_FLAGS.items():
        words += [flag, str(config[name])] if name in config else []
    words += config.get("extraArgs", [])
    words += ["--revision", spec["modelRevision"]] if "modelRevision" in spec else []
    image = f"{spec['repository']}:{spec['tag']}"
    pod = {"image": image, "command": words, "env": spec.get("env", [])}
    assert spec["requestGPU"] * spec["replicaCount"] >= 1
    return json.dumps({"kind": "Pod", "containers": [pod]}), spec["replicaCount"]


def test_the_chart_plans_the_same(plans: list[tuple[Request, Plan, str]]) -> None:
    seen, refused = set(), []
    for request, plan, _ in plans[:60]:
        try:
            values = emission.written(plan, request, "helm")
        except UsageError:  # more GPUs than a machine has
            refused.append(plan.gpu.count)
            continue
        line, pods = started_by_the_chart(values)
        seen.add(pods > 1)
        sized = read_back(line, replace(request, engine="vllm"), dp=pods if pods > 1 else None)
        assert whole(sized) == whole(plan), values
    assert seen == {True, False}
    assert all(gpus > GPUS_PER_NODE for gpus in refused)


def test_the_draws_say_something(plans: list[tuple[Request, Plan, str]]) -> None:
    """Every option, size and type is in some line, else the test above tests less than it says."""
    lines = "\n".join(line for *_, line in plans)
    spoken = {name: f"--{name.replace('_', '-')}" for name in OPTIONS}
    spoken |= {"usage_context": "--max-num-seqs", "cudagraph_mode": "--compilation-config"}
    spoken |= {"spec_tokens": "--speculative-config"}
    assert [name for name, flag in spoken.items() if flag not in lines] == []
    assert {plan.verdict for _, plan, _ in plans} == {"fits", "does_not_fit"}
    for flag in ("--tensor", "--pipeline", "--data", "--decode-context", "--quantization fp8"):
        assert flag in lines
