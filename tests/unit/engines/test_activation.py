"""The profile run's peak by hand, and what comes on top of it."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from real_models import device, full, toy

from kvplan.engines.base import Setup
from kvplan.engines.runtime import Range
from kvplan.engines.vllm import memory
from kvplan.engines.vllm.calibration import nearest
from kvplan.engines.vllm.engine import Vllm
from kvplan.ledger import Draft
from kvplan.models.caches import LatentCache
from kvplan.models.spec import ModelSpec
from kvplan.plan import Parallelism
from kvplan.units import GIB

BAND = nearest((0, 19), v0=False)
RESIDUAL, FEED_FORWARD = BAND.residual_bytes.value, BAND.feedforward_bytes.value
LOGITS, HIDDEN = BAND.logits_bytes.value, BAND.hidden_bytes.value
FIXED = BAND.fixed_gib.value * GIB


def lines(
    model: ModelSpec, *, tp: int = 1, pp: int = 1, version: str = "0.19.0", **options: Any
) -> dict[str, Draft]:
    setup = Setup(
        model=model,
        gpu=device(),
        version=version,
        parallelism=Parallelism(tp=tp, pp=pp),
        options=options,
        context=1024,
    )
    made = Vllm().prepare(setup)
    assert made.stages is not None
    return {draft.name: draft for draft in made.stages[0].budget}


def wide(**changes: Any) -> ModelSpec:
    return toy(
        full(), full(), hidden_size=4096, intermediate_size=16384, vocab_size=1000, **changes
    )


def test_with_a_small_vocabulary_a_layers_step_is_the_peak() -> None:
    found = lines(wide(), max_num_batched_tokens=8192, max_num_seqs=8)
    step = 8192 * 4096 * RESIDUAL + 8192 * 16384 * FEED_FORWARD
    assert found["activation_peak"].value() == math.ceil(step + FIXED)


def test_with_a_large_vocabulary_sampling_is_the_peak() -> None:
    model = wide().model_copy(update={"vocab_size": 200_000})
    found = lines(model, max_num_batched_tokens=2048, max_num_seqs=1024)
    sampling = 1024 * 200_000 * LOGITS + 2048 * 4096 * HIDDEN
    assert found["activation_peak"].value() == pytest.approx(sampling + FIXED, abs=1)


def test_tensor_parallelism_splits_the_feed_forward_alone() -> None:
    options = {"max_num_batched_tokens": 8192, "max_num_seqs": 8}
    one, two = lines(wide(), **options), lines(wide(), tp=2, **options)
    saved = one["activation_peak"].value() - two["activation_peak"].value()
    assert saved == 8192 * (16384 // 2) * FEED_FORWARD


def test_only_the_last_stage_samples() -> None:
    model = wide().model_copy(update={"vocab_size": 200_000})
    first = lines(model, pp=2, max_num_batched_tokens=2048, max_num_seqs=1024)
    step = 2048 * 4096 * RESIDUAL + 2048 * 16384 * FEED_FORWARD
    assert first["activation_peak"].value() == pytest.approx(step + FIXED, abs=1)


def test_before_020_compiling_is_no_part_of_the_profile_run() -> None:
    assert "compilation" not in lines(wide())


def test_what_of_the_buffers_does_not_stay_is_held_in_the_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    half = replace(BAND, experts_share=Range(0.5, 0.5, 0.5))
    monkeypatch.setattr(memory, "nearest", lambda *_, **__: half)
    model = wide(experts=8, experts_per_token=2).model_copy(update={"intermediate_size": 1024})
    found = lines(model, max_num_batched_tokens=8192, max_num_seqs=8)
    buffers = 8192 * 2 * 2 * (4096 + 4096)
    step = 8192 * 4096 * RESIDUAL
    assert found["expert_buffers"].value() == buffers // 2
    assert found["activation_peak"].value() == pytest.approx(step + buffers / 2 + FIXED, abs=1)


def test_buffers_of_experts_stay_beside_the_peak() -> None:
    """Wide: twice 1,024 is less than 4,096; narrow: 1,024 is too. Both hold the hidden width."""
    model = wide(experts=8, experts_per_token=2).model_copy(update={"intermediate_size": 1024})
    found = lines(model, max_num_batched_tokens=8192, max_num_seqs=8)
    assert found["expert_buffers"].value() == 8192 * 2 * 2 * (4096 + 4096)
    assert found["activation_peak"].value() == pytest.approx(8192 * 4096 * RESIDUAL + FIXED, abs=1)


def test_latent_attention_takes_a_workspace() -> None:
    latent = toy(LatentCache(latent_dim=512, rope_dim=64), hidden_size=4096, vocab_size=1000)
    plain = toy(full(), hidden_size=4096, vocab_size=1000)
    more = (
        lines(latent, max_num_seqs=1)["activation_peak"].value()
        - lines(plain, max_num_seqs=1)["activation_peak"].value()
    )
    assert more == pytest.approx(BAND.latent_gib.value * GIB, abs=2)


def test_without_graphs_nothing_is_compiled() -> None:
    graphs = lines(wide(), version="0.30.0")
    assert "compilation" in graphs
    for option in ({"enforce_eager": True}, {"cudagraph_mode": "NONE"}):
        eager = lines(wide(), version="0.30.0", **option)
        assert "compilation" not in eager
        assert "cuda_graphs" not in eager
