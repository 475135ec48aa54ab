"""What lies where is worked out once a choice, and what it holds is added up once."""

from __future__ import annotations

from typing import Any

import pytest

from kvplan import api
from kvplan.engines.llamacpp.deployment import LlamaCppDeployment
from kvplan.engines.llamacpp.layout import Layout, lay_out
from kvplan.sources.gpus import find_gpu

MODELS = (
    "meta-llama/Llama-3.1-8B-Instruct",
    "google/gemma-3-27b-it",
    "openai/gpt-oss-20b",
    "Qwen/Qwen3-Next-80B-A3B-Instruct",
    "deepseek-ai/DeepSeek-V2-Lite",
)


def prepared(model: str, **options: Any) -> LlamaCppDeployment:
    options = {"n_gpu_layers": "auto"} | options
    spec = api.read_spec(model, offline=True)
    found = api.prepare(spec, find_gpu("RTX 4090"), engine="llama.cpp", options=options)
    assert isinstance(found, LlamaCppDeployment)
    return found


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("options", [{}, {"kv_unified": True}, {"swa_full": True}])
def test_bytes_added_up_are_those_of_all_layers(model: str, options: dict[str, Any]) -> None:
    found = prepared(model, tensor_split="2,1", **options)
    full = found.settings.swa_full
    for requested, sequences in ((700, 1), (40_000, 8), (9_000, 64)):
        start = found.allocation(requested, sequences)
        for load in start.loads:
            each = (store.bytes(start.context, swa_full=full) for store in load.model.stores)
            assert load.cache_bytes == sum(each)
        cells = {store.cells(start.context, swa_full=full) for store in found.body.stores}
        assert found.body.cells(start.context, swa_full=full) == sum(cells)


@pytest.mark.parametrize("model", MODELS)
def test_nothing_is_lost_on_the_way_to_a_device(model: str) -> None:
    found = prepared(model)
    start = found.allocation(65_536, 4)
    weights, tied = found.body.weights, sum(found.body.weights.tied.values())
    placed = sum(load.weight_bytes for load in start.loads)
    assert placed == weights.total + tied * (start.placement.output == 0)
    assert sum(len(load.model.stores) for load in start.loads) == len(found.body.stores)


def test_a_start_does_not_depend_on_what_was_asked_before() -> None:
    used = prepared(MODELS[1])
    for context in range(1_000, 100_000, 7_000):
        used.figures(context)
    assert used.figures(33_000) == prepared(MODELS[1]).figures(33_000)
    assert used.allocation(33_000, 2) == prepared(MODELS[1]).allocation(33_000, 2)


def test_many_lengths_are_laid_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    laid: list[Layout] = []

    def counted(*parts: Any, **more: Any) -> Layout:
        laid.append(lay_out(*parts, **more))
        return laid[-1]

    monkeypatch.setattr("kvplan.engines.llamacpp.deployment.lay_out", counted)
    found = prepared(MODELS[0], n_gpu_layers="all")
    for context in range(1_000, 100_000, 1_000):
        found.figures(context)
    assert len(laid) == 1
