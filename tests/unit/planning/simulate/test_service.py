"""The roofline: what it adds up, and that the slower side counts."""

from __future__ import annotations

import pytest

from kvplan import api
from kvplan.engines.base import BlockGroup
from kvplan.errors import UsageError
from kvplan.hardware import GpuSpec
from kvplan.planning.simulate.service import Batch, Roofline, roofline
from kvplan.sources.gpus import find_gpus

LINE = Roofline(
    bytes_per_s=100.0,
    flops_per_s=1000.0,
    weight_bytes=50.0,
    expert_bytes=0.0,
    expert_share=0.0,
    token_flops=10.0,
    context_bytes=2.0,
    context_flops=1.0,
)


def gpu(name: str) -> GpuSpec:
    return find_gpus(name)[0]


def test_a_small_batch_moves_bytes_and_a_large_one_computes() -> None:
    assert LINE.seconds(Batch(1, 10)) == pytest.approx((50 + 2 * 10) / 100)
    assert LINE.seconds(Batch(0, 0, 1000, 0)) == pytest.approx(1000 * 10 / 1000)


def test_windows_attend_to_no_more_than_their_span() -> None:
    line = Roofline(100.0, 1e9, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, windows=((8, 1.0, 0.0),))
    assert line.seconds(Batch(2, 100)) == pytest.approx(2 * 8 / 100)
    assert line.seconds(Batch(2, 10)) == pytest.approx(10 / 100)


def test_a_step_reads_the_experts_that_its_tokens_are_routed_to() -> None:
    line = Roofline(1.0, 1e9, 0.0, 64.0, 0.25, 0.0, 0.0, 0.0)
    assert line.seconds(Batch(1, 0)) == pytest.approx(16.0)
    assert line.seconds(Batch(2, 0)) == pytest.approx(64 * (1 - 0.75**2))


def test_a_dense_model_reads_its_weights_once_a_step() -> None:
    spec = api.read_spec("meta-llama/Llama-3.1-8B-Instruct", offline=True)
    groups = (BlockGroup("all", 16, token_bytes=131_072.0),)
    line = roofline(spec, gpu("H100"), groups, ranks=1)
    weights = 2 * spec.parameters_total
    assert line.weight_bytes == pytest.approx(weights, rel=0.01)
    assert line.seconds(Batch(1, 1000)) == pytest.approx(
        (line.weight_bytes + 1000 * 131_072) / (3350e9 * 0.8)
    )
    # Query heads × (keys + values) × multiply and add × layers.
    assert line.context_flops == 32 * 256 * 2 * 32


def test_ranks_share_the_work() -> None:
    spec = api.read_spec("meta-llama/Llama-3.1-8B-Instruct", offline=True)
    one, four = (roofline(spec, gpu("H100"), (), ranks=ranks) for ranks in (1, 4))
    assert four.weight_bytes == pytest.approx(one.weight_bytes / 4)
    assert four.token_flops == pytest.approx(one.token_flops / 4)


def test_a_device_of_unknown_speed_is_refused() -> None:
    spec = api.read_spec("meta-llama/Llama-3.1-8B-Instruct", offline=True)
    with pytest.raises(UsageError, match="How fast"):
        roofline(spec, gpu("custom:48GiB"), (), ranks=1)
