"""Peaks without memory against the closed form, and against the ledger's own layer step."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("torch")

from small_models import SMALL, small_model

from kvplan import api
from kvplan.measure.closed_form import layer_step_bytes
from kvplan.measure.fake import peaks
from kvplan.measure.job import job_of
from kvplan.models.spec import ModelSpec

TOKENS = 1024
REAL = (
    "Qwen/Qwen3-8B",
    "meta-llama/Llama-3.1-8B-Instruct",
    "meta-llama/Llama-3.1-70B-Instruct",
    "google/gemma-3-12b-it",
    "ibm-granite/granite-3.1-8b-instruct",
    "mistralai/Mistral-Nemo-Instruct-2407",
    "hugging-quants/Meta-Llama-3.1-70B-Instruct-AWQ-INT4",
    "mistralai/Mixtral-8x7B-v0.1",
    "Qwen/Qwen3-30B-A3B",
    "openai/gpt-oss-120b",
    "deepseek-ai/DeepSeek-V2-Lite",
    "deepseek-ai/DeepSeek-V3",
)


def plan_of(model: ModelSpec, **options: Any) -> Any:
    """A plan on a device where everything fits."""
    return api.size(
        model,
        "custom:3000GiB",
        tp=options.pop("tp", 1),
        context=64 if model.id.startswith("small/") else 8192,
        engine_options={"max_num_batched_tokens": TOKENS, "max_num_seqs": 64, **options},
        advice=False,
    )


@pytest.mark.parametrize("tp", [1, 4])
@pytest.mark.parametrize("name", REAL)
def test_real_models_within_ten_percent(name: str, tp: int) -> None:
    model = api.read_spec(name, offline=True)
    plan = plan_of(model, tp=tp)
    job = job_of(plan, model)
    found = peaks(job)
    weights = sum(line.bytes for line in plan.ledger if line.name.startswith("weights."))
    assert found.weights == weights
    assert layer_step_bytes(job) == pytest.approx(found.layer_step, rel=0.1)
    assert planned_step(plan) == pytest.approx(found.layer_step, rel=0.1)


def planned_step(plan: Any) -> float:
    """The layer-step term of the ledger, `step_share` and all, with the experts' buffers."""
    lines = {line.name: line for line in plan.ledger}
    peak = lines["activation_peak"].inputs
    elements = peak["tokens"] * peak["step_elements"]
    if "latent_elements" in peak:
        room = peak["tokens"] * peak["latent_elements"]
        elements = max(elements, room + peak["context_rows"] * peak["row_elements"])
    beside = lines["expert_buffers"].bytes if "expert_buffers" in lines else 0
    return float(elements * peak["element_bytes"] * peak["step_share"] + beside)


@pytest.mark.parametrize("name", [name for name in SMALL if name != "encoder-decoder"])
def test_small_models_within_ten_percent(name: str) -> None:
    model = small_model(name)
    job = job_of(plan_of(model), model)
    assert layer_step_bytes(job) == pytest.approx(peaks(job).layer_step, rel=0.1)


def test_the_peak_grows_with_tokens_alone() -> None:
    model = small_model("GQA")
    few, many = (
        peaks(job_of(plan_of(model, max_num_batched_tokens=tokens), model)).layer_step
        for tokens in (1024, 4096)
    )
    assert many == pytest.approx(4 * few, rel=0.05)


def test_logits_grow_with_requests() -> None:
    model = small_model("GQA")
    few, many = (
        peaks(job_of(plan_of(model, max_num_seqs=requests), model)).logits
        for requests in (64, 1024)
    )
    assert many > few + 900 * model.vocab_size * 4
