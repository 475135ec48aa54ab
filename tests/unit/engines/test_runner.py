"""Which model runner runs, and what no flag tells."""

from __future__ import annotations

from typing import Any

import pytest
from real_models import full, toy

from kvplan.engines.vllm.runner import estimates_graphs, newer_runner, other_bytes
from kvplan.engines.vllm.speculative import Speculative
from kvplan.models.caches import RecurrentCache, StateTensor
from kvplan.models.spec import ModelSpec

STATE = RecurrentCache(states=(StateTensor(name="ssm", shape=(4, 4)),))
LISTED = "DeepseekV2ForCausalLM"


def model(architecture: str = "OtherForCausalLM", **changes: Any) -> ModelSpec:
    return toy(full(), full(), architecture=architecture, **changes)


def minors(spec: ModelSpec) -> list[int]:
    """Releases from 0.20 to 0.30 in which the newer one runs it."""
    return [minor for minor in range(20, 31) if newer_runner(spec, (0, minor, 1), None)]


@pytest.mark.parametrize(
    ("spec", "first"),
    [
        (model(), 25),
        (model("Qwen3ForCausalLM"), 22),
        (model("LlamaForCausalLM"), 23),
        (model("LlamaForCausalLM", quantization="awq"), 24),
        (model(experts=8), 29),
        (model(LISTED, experts=8), 24),
    ],
)
def test_since_when_it_runs_a_decoder(spec: ModelSpec, first: int) -> None:
    assert minors(spec) == list(range(first, 31))


def test_models_with_recurrent_layers_came_last() -> None:
    hybrid = toy(full(), STATE, architecture="OtherForCausalLM")
    assert minors(hybrid) == [29, 30]
    listed = hybrid.model_copy(update={"architecture": LISTED})
    assert minors(listed) == [24, *range(27, 31)]
    assert minors(toy(STATE, architecture="MambaForCausalLM")) == [29, 30]


@pytest.mark.parametrize(
    ("method", "since"), [("mtp", 25), ("eagle3", 25), ("ngram", 32), ("medusa", None)]
)
def test_what_it_can_not_draft_the_older_one_runs(method: str, since: int | None) -> None:
    drafts = Speculative(method=method)
    found = [minor for minor in range(25, 34) if newer_runner(model(), (0, minor), drafts)]
    assert found == ([] if since is None else list(range(since, 34)))
    assert newer_runner(model(), (0, 30), Speculative())


def test_graphs_are_estimated_by_the_older_one_and_by_the_newer_since_029() -> None:
    found = {
        minor: estimates_graphs(model(), (0, minor), None, vendor="nvidia")
        for minor in (24, 25, 28, 29)
    }
    assert found == {24: True, 25: False, 28: False, 29: True}
    assert not estimates_graphs(model(), (0, 24), None, vendor="intel")


def test_another_sampler_may_run_on_nvidia_before_017() -> None:
    for vendor in ("nvidia", "custom"):
        found = {minor: other_bytes((0, minor), vendor, v0=False) for minor in (7, 8, 16, 17)}
        assert found == {7: None, 8: 14, 16: 14, 17: None}
    assert other_bytes((0, 8), "amd", v0=False) is None
    assert other_bytes((0, 8), "nvidia", v0=True) is None
