"""Flash attention of default CUDA builds: what is planned where they have no kernels."""

from __future__ import annotations

from typing import Any

import pytest

import kvplan
from kvplan.plan import Plan, Reason

CODE = "flash_attention_by_build"


def size(gpu: str = "RTX 4090", **options: Any) -> Plan:
    asked = {"n_ctx": 32_768, "parallel": 4} | options
    return kvplan.size(
        "meta-llama/Llama-3.1-8B-Instruct", gpu, engine="llama.cpp", weights="gguf:Q4_K_M",
        engine_options=asked, offline=True,
    )  # fmt: skip


def remark(plan: Plan) -> Reason | None:
    return next((reason for reason in plan.reasons if reason.code == CODE), None)


def compute(plan: Plan) -> int:
    return next(line.bytes for line in plan.ledger if line.name == "compute_buffer")


def test_types_that_differ_turn_it_off_and_scores_are_kept() -> None:
    plan = size(cache_type_k="q8_0")
    assert plan.engine.options["flash_attn"] is False
    assert "flash_attn" in plan.engine.assumed
    # Scores of 512 tokens with the 8,192 cells of a slot, for 32 heads, in float32.
    assert compute(plan) - compute(size()) > 0.95 * 512 * 8192 * 32 * 4
    said = remark(plan)
    assert said is not None
    assert "turns it off" in said.message


def test_what_was_given_stays() -> None:
    plan = size(cache_type_k="q8_0", flash_attn="on")
    said = remark(plan)
    assert said is not None
    assert "the host computes it" in said.message
    assert compute(plan) == compute(size())
    assert remark(size(cache_type_k="q8_0", flash_attn="off")) is None


def test_a_quantized_v_needs_another_build() -> None:
    plan = size(cache_type_k="q5_1", cache_type_v="q5_1")
    said = remark(plan)
    assert said is not None
    assert "Planned for a build with GGML_CUDA_FA_ALL_QUANTS=ON" in said.message
    assert plan.engine.options["flash_attn"] is True


@pytest.mark.parametrize(
    ("gpu", "options"),
    [
        ("RTX 4090", {}),
        ("RTX 4090", {"cache_type_k": "q8_0", "cache_type_v": "q8_0"}),
        ("RTX 4090", {"cache_type_k": "q8_0", "cache_type_v": "q4_0"}),
        ("RTX 4090", {"cache_type_k": "q8_0", "n_gpu_layers": 0}),
        ("RTX 4090", {"cache_type_k": "q8_0", "no_kv_offload": True}),
        ("cpu:64GiB", {"cache_type_k": "q8_0"}),
        ("custom:48GiB", {"cache_type_k": "q8_0"}),
        ("Apple-M2-Ultra-96GB", {"cache_type_k": "q8_0"}),
    ],
)
def test_elsewhere_it_is_on(gpu: str, options: dict[str, Any]) -> None:
    plan = size(gpu, **options)
    assert remark(plan) is None
    assert plan.engine.options["flash_attn"] is True
