"""Tiers behind the GPU, by hand."""

from __future__ import annotations

import pytest

from kvplan import api
from kvplan.engines.base import Setup
from kvplan.errors import NotModelledError
from kvplan.plan import Parallelism
from kvplan.planning.traffic.offload import Running, TierAsked, offload_tiers
from kvplan.planning.traffic.speeds import Prompts, machine_of
from kvplan.sources.gpus import find_gpu

SPEC, H100 = api.read_spec("meta-llama/Llama-3.1-8B-Instruct", offline=True), find_gpu("H100")
TOKEN = 32 * 2 * 8 * 128 * 2
PROMPTS = Prompts(((1600, 1.0),))


def test_a_prompt_comes_back_in_bytes_over_bandwidth() -> None:
    machine = machine_of(api.prepare(SPEC, H100), Setup(SPEC, H100))
    asked = [TierAsked("host", 100 * 1600 * TOKEN, "pcie-5"), TierAsked("disk", 10**12, "4GB")]
    host, disk = offload_tiers(asked, machine, H100, PROMPTS, Running(1, 1600))
    assert host.requests == pytest.approx(100)
    assert host.tokens == 160_000
    assert host.load.seconds_mean == pytest.approx(1600 * TOKEN / 63e9)
    assert disk.load.seconds_mean == pytest.approx(1600 * TOKEN / 4e9)
    assert host.compute_mean_s is not None
    assert host.faster == pytest.approx(host.compute_mean_s / host.load.seconds_mean)
    assert host.most_loads_per_s == pytest.approx(63e9 / (1600 * TOKEN))
    assert disk.decode_from_tier_s is not None
    assert disk.decode_from_tier_s == pytest.approx(1600 * TOKEN / 4e9)
    assert host.decode_step_s is not None
    # Weights once, in 80 % of 3,350 GB/s, and the cache of 1,600 tokens.
    read = (2 * 8_030_261_248 + 1600 * TOKEN) / (3350e9 * 0.8)
    assert host.decode_step_s == pytest.approx(read, rel=0.01)


def test_a_link_is_one_gpus_and_a_rate_the_replicas() -> None:
    parallel = Parallelism(tp=4)
    machine = machine_of(
        api.prepare(SPEC, H100, parallelism=parallel), Setup(SPEC, H100, parallelism=parallel)
    )
    named, rate = offload_tiers(
        [TierAsked("host", 10**12, "pcie-5"), TierAsked("disk", 10**12, "252GB")],
        machine,
        H100,
        PROMPTS,
        Running(1, 1600),
    )
    assert named.load == rate.load
    assert named.load.bytes_mean == 1600 * TOKEN // 4


def test_other_engines_are_refused() -> None:
    prepared = api.prepare(SPEC, H100, engine="sglang")
    with pytest.raises(NotModelledError, match="vllm only"):
        machine_of(prepared, Setup(SPEC, H100))
