"""Compute buffers that public start-up logs print, beside the model of them.

Only starts whose log states model, context, batch, slots and whether flash attention is on. Before
b9688 logits of the whole batch have room, as they have in a library that leaves n_outputs_max.
"""

from __future__ import annotations

from typing import Any

import pytest
from llamacpp_cases import spec_from

import kvplan
from kvplan.engines.llamacpp.compute import SOURCE, spread
from kvplan.plan import Plan

# As llama_model_loader prints it of unsloth's file of Qwen3.5-9B.
QWEN_9B = {
    "general.architecture": "qwen35", "qwen35.block_count": 32, "qwen35.context_length": 262_144,
    "qwen35.embedding_length": 4096, "qwen35.feed_forward_length": 12_288,
    "qwen35.attention.head_count": 16, "qwen35.attention.head_count_kv": 4,
    "qwen35.attention.key_length": 256, "qwen35.attention.value_length": 256,
    "qwen35.ssm.conv_kernel": 4, "qwen35.ssm.state_size": 128, "qwen35.ssm.group_count": 16,
    "qwen35.ssm.time_step_rank": 32, "qwen35.ssm.inner_size": 4096,
    "qwen35.full_attention_interval": 4, "qwen35.vocab_size": 248_320,
}  # fmt: skip
Q8, Q4 = ({"cache_type_k": t, "cache_type_v": t} for t in ("q8_0", "q4_0"))
OLD, NEW = "b8763", "b10488"
# Model, build, device, options; MiB of each GPU, and of the host.
Start = tuple[Any, str, str, dict[str, Any], tuple[float, ...], float | None]
WHOLE: dict[str, Start] = {
    "Qwen3.x-27B, RTX 3090": (
        "Qwen/Qwen3.5-27B", OLD, "cuda", {"n_ctx": 200_192, **Q8}, (654.78,), 411.29),
    "Qwen3-4B, CUDA": ("Qwen/Qwen3-4B", NEW, "cuda", {"n_ctx": 8192}, (85.01,), 28.02),
    "Llama-3.2-3B by the library, CUDA": (
        "meta-llama/Llama-3.2-3B-Instruct", NEW, "cuda", {"n_ctx": 2048, "n_outputs_max": 0},
        (284.90,), 16.26),
    "gpt-oss-20b (lcp-075)": (
        "openai/gpt-oss-20b", OLD, "cuda", {"n_ctx": 131_072}, (456.98,), 263.15),
    "Qwen3-30B-A3B (lcp-081)": (
        "Qwen/Qwen3-30B-A3B", OLD, "cuda",
        {"n_ctx": 65_536, "n_seq_max": 4, "kv_unified": True}, (300.75,), 132.01),
    "Qwen3-30B-A3B on two GPUs (lcp-084)": (
        "Qwen/Qwen3-30B-A3B", OLD, "cuda", {"n_ctx": 16_384, "flash_attn": False},
        (1080.0, 1080.0), 36.01),
    "DeepSeek-R1-0528-Qwen3-8B (lcp-051)": (
        "Qwen/Qwen3-8B", OLD, "cuda", {"n_ctx": 131_072, "flash_attn": False}, (9240.0,), 264.01),
    "Qwen3-8B class (lcp-052)": (
        "Qwen/Qwen3-8B", OLD, "cuda", {"n_ctx": 8192, "flash_attn": False}, (554.0,), 21.01),
    "Qwen3.6-27B (lcp-032)": (
        "Qwen/Qwen3.6-27B", OLD, "cuda",
        {"n_ctx": 131_072, "n_seq_max": 4, "kv_unified": True}, (495.0,), 276.29),
    "Qwen3-8B, Radeon VII": ("Qwen/Qwen3-8B", OLD, "rocm", {"n_ctx": 8192, **Q4}, (304.75,), None),
    "Qwen3-32B by the library, ROCm": (
        "Qwen/Qwen3-32B", NEW, "rocm",
        {"n_ctx": 16_384, "flash_attn": False, "n_outputs_max": 0}, (2136.01,), None),
    "Qwen3.5-9B, M4 Pro": (QWEN_9B, "b8999", "metal", {"n_ctx": 262_144, **Q8}, (832.60,), 528.29),
}  # fmt: skip
_EIGHT = {"n_ctx": 16_384, "n_seq_max": 8, "n_batch": 256, "n_ubatch": 256}
EXPERTS_ON_HOST: dict[str, Start] = {
    "DeepSeek-Coder-V2-Lite (lcp-013)": (
        "deepseek-ai/DeepSeek-Coder-V2-Lite-Instruct", "b10644", "cuda",
        {**_EIGHT, "n_cpu_moe": 24, "flash_attn": False}, (125.39,), 6.01),
    "DeepSeek-Coder-V2-Lite (lcp-022)": (
        "deepseek-ai/DeepSeek-Coder-V2-Lite-Instruct", "b10644", "cuda",
        {**_EIGHT, "n_cpu_moe": 4, "flash_attn": False}, (125.39,), None),
    "gpt-oss-20b (lcp-017)": (
        "openai/gpt-oss-20b", "b10644", "cuda", {**_EIGHT, "n_cpu_moe": 20}, (169.67,), 6.88),
}  # fmt: skip


def planned(start: Start) -> Plan:
    model, build, backend, options, gpus, _ = start
    device = "Apple-M4-Pro-48GB" if backend == "metal" else "+".join(["custom:80GiB"] * len(gpus))
    spec = spec_from(model) if isinstance(model, dict) else model
    return kvplan.size(
        spec,
        device,
        engine=f"llama.cpp=={build}",
        engine_options={"n_seq_max": 1, **options},
        offline=True,
        advice=False,
    )


def ratios(start: Start) -> tuple[list[float], float | None]:
    """Printed over planned: of the GPUs, and of the host."""
    plan, (*_, gpus, host) = planned(start), start
    parts = [printed * 2**20 / plan.devices[n].compute_bytes for n, printed in enumerate(gpus)]
    return parts, host * 2**20 / plan.devices[-1].compute_bytes if host else None


@pytest.mark.parametrize("name", WHOLE)
def test_buffers_of_logs_lie_in_their_ranges(name: str) -> None:
    parts, host = ratios(WHOLE[name])
    metal = WHOLE[name][2] == "metal"
    low, high = spread("metal" if metal else "gpu", partial=False, beside_gpus=True)
    assert all(low <= part <= high for part in parts)
    low, high = spread("cpu", partial=False, beside_gpus=True)
    assert host is None or low <= host <= high


@pytest.mark.parametrize("name", EXPERTS_ON_HOST)
def test_experts_on_the_host_widen_the_range(name: str) -> None:
    (part,), _ = ratios(EXPERTS_ON_HOST[name])
    assert spread("gpu", partial=False, beside_gpus=True)[0] <= part
    assert part <= spread("gpu", partial=True, beside_gpus=True)[1]


def test_the_source_states_what_the_logs_show() -> None:
    whole = {name: ratios(start) for name, start in WHOLE.items()}
    parts = [part for each, _ in whole.values() for part in each]
    assert (len(parts), f"{min(parts):.2f}-{max(parts):.2f}") == (13, "0.89-1.11")
    assert "n=13 GPU buffers" in SOURCE
    assert "0.89-1.11" in SOURCE
    experts = [ratios(start) for start in EXPERTS_ON_HOST.values()]
    spans = [part for each, _ in experts for part in each]
    assert (len(spans), f"{min(spans):.1f}-{max(spans):.1f}") == (3, "1.5-4.2")
    hosts = [host for _, host in (*whole.values(), *experts) if host is not None]
    assert (len(hosts), f"{min(hosts):.2f}-{max(hosts):.2f}") == (12, "0.25-1.63")
    assert "n=12 of hosts beside GPUs (0.25-1.63)" in SOURCE
