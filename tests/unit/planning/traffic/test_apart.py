"""Separate pools: waits, transfers and overlap against simulations of each."""

from __future__ import annotations

import math
from dataclasses import replace
from random import Random

import pytest

from kvplan import api
from kvplan.engines.base import Setup
from kvplan.errors import UsageError
from kvplan.planning.traffic.apart import Apart, Side, _Queue, disaggregated
from kvplan.planning.traffic.day import load_of
from kvplan.planning.traffic.links import Link
from kvplan.planning.traffic.replica import measure
from kvplan.planning.traffic.speeds import Machine, Prompts, machine_of
from kvplan.planning.traffic.traffic import Demand, Service, Traffic
from kvplan.sources.gpus import find_gpu
from kvplan.traffic_parts import DisaggregatedPools

MODEL, GPU = "meta-llama/Llama-3.1-8B-Instruct", "H100-SXM-80GB"
SPEC, H100 = api.read_spec(MODEL, offline=True), find_gpu(GPU)
PREPARED = api.prepare(SPEC, H100)
# 32 layers, K and V, 8 heads of 128 elements of 2 bytes.
TOKEN = 32 * 2 * 8 * 128 * 2


def machine(rate: float | None = None) -> Machine:
    return machine_of(PREPARED, Setup(SPEC, H100), prompt_rate=rate)


def apart(prompts: Prompts, **changes: object) -> Apart:
    side = Side(machine(10_000.0), GPU, 1)
    plain = Apart(
        prefill=side,
        decode=Side(machine(), GPU, 1),
        link=Link("ib-400", 50e9, "given"),
        efficiency=1.0,
        layers=32,
        prompts=prompts,
        rate_per_s=5.0,
        first_token_s=1.0,
        step_s=0.05,
    )
    return replace(plain, **changes)  # type: ignore[arg-type]


MIXED = Prompts(((500, 0.7), (4000, 0.3)))


def test_a_prompts_cache_is_its_blocks() -> None:
    found = apart(Prompts(((4000, 1.0),))).transfer()
    assert found.bytes_mean == found.bytes_longest == 4000 * TOKEN
    assert found.seconds_mean == pytest.approx(4000 * TOKEN / 50e9)
    half = apart(Prompts(((4000, 1.0),)), efficiency=0.5).transfer()
    assert half.seconds_mean == pytest.approx(2 * found.seconds_mean)


def test_fewer_prefill_gpus_send_more_each() -> None:
    plain = apart(MIXED)
    wider = replace(plain.decode.machine, ranks=4)
    four = replace(plain, decode=replace(plain.decode, machine=wider))
    assert four.transfer().bytes_p95 == 4 * plain.transfer().bytes_p95


def waits(prompts: Prompts, rate: float, speed: float) -> list[float]:
    """Waits in front of one server, by Lindley's recursion."""
    random, wait, found = Random(2), 0.0, []  # noqa: S311  no secret
    tokens, shares = zip(*prompts.lengths, strict=True)
    for length in random.choices(tokens, shares, k=200_000):
        found.append(wait)
        wait = max(0.0, wait + length / speed - random.expovariate(rate))
    return sorted(found)


@pytest.mark.parametrize("rate", [3.0, 5.0, 6.0])
def test_ninety_five_percent_wait_no_longer_than_a_queue_that_is_walked_through(
    rate: float,
) -> None:
    """The tail is taken to be exponential, which is near the walk's and not below it by much."""
    here = apart(MIXED, rate_per_s=rate)
    walked = waits(MIXED, rate, 10_000.0)
    found = _Queue(here, here.transfer()).first_token(1).wait_s
    assert found == pytest.approx(walked[int(0.95 * len(walked))], rel=0.15)


@pytest.mark.parametrize("giga", [0.2, 1.0, 5.0, 50.0])
def test_layers_sent_one_by_one_hide_what_a_walk_hides(giga: float) -> None:
    here = apart(Prompts(((4000, 1.0),)), link=Link("x", giga * 1e9, "given"))
    whole, prompt = here.transfer().seconds_p95, here.prompt_s(4000)
    free = 0.0
    for layer in range(1, 33):
        free = max(free, prompt * layer / 32) + whole / 32
    hidden = 1 - (free - prompt) / whole
    assert _Queue(here, here.transfer()).possible == pytest.approx(hidden)


def pools(here: Apart) -> DisaggregatedPools:
    traffic = Traffic(((500, 200, 0.7), (4000, 200, 0.3)))
    service = Service(1 / here.step_s)
    measured = measure(PREPARED, 131_072, traffic, service)
    load = load_of(
        measured.replica(),
        Demand(here.rate_per_s),
        service,
        steps=measured.steps,
        replicas=1,
        risk=0.001,
    )
    return disaggregated(here, load, measured.tokens, here.rate_per_s * 200 * here.step_s)


def test_one_replica_fewer_is_late() -> None:
    here = apart(MIXED, rate_per_s=40.0)
    found = pools(here)
    assert found.prefill.replicas is not None
    queue = _Queue(here, here.transfer())
    assert queue.first_token(found.prefill.replicas).total_s <= 1.0
    assert queue.first_token(found.prefill.replicas - 1).total_s > 1.0
    assert found.prefill.utilization is not None
    assert found.prefill.utilization < 1


def test_a_slow_link_needs_overlap_and_a_hopeless_limit_says_so() -> None:
    slow = apart(MIXED, link=Link("eth", 1e9, "given"), first_token_s=0.7)
    found = pools(slow)
    assert found.prefill.replicas is None
    assert found.prefill.replicas_overlapped is not None
    assert 0 < found.first_token.overlap_needed <= found.first_token.overlap_possible
    hopeless = pools(apart(MIXED, first_token_s=0.1))
    assert hopeless.prefill.replicas_overlapped is None
    assert hopeless.first_token.overlap_needed > 1


def test_more_requests_never_need_fewer_replicas() -> None:
    counts = [pools(apart(MIXED, rate_per_s=rate)) for rate in (1.0, 5.0, 20.0, 80.0, 320.0)]
    prefill = [found.prefill.replicas or 0 for found in counts]
    decode = [found.decode.replicas or 0 for found in counts]
    assert prefill == sorted(prefill)
    assert decode == sorted(decode)
    assert prefill[-1] > prefill[0] > 0
    assert decode[-1] > decode[0] > 0


def test_decode_replicas_are_fast_enough() -> None:
    found = pools(apart(MIXED, rate_per_s=320.0, step_s=0.012)).decode
    assert found.replicas is not None
    assert found.running is not None
    assert found.running <= found.most_running
    step = machine().step_s(found.most_running, 2000)
    assert step is not None
    assert not math.isinf(step)


def test_a_device_of_unknown_speed_needs_a_rate() -> None:
    unknown = replace(machine(), times=None)
    here = apart(MIXED, prefill=Side(unknown, "somewhere", 1))
    with pytest.raises(UsageError, match="How fast"):
        here.prompt_s(100)


def test_a_prompt_in_chunks_takes_as_long_as_its_chunks() -> None:
    """No longer than twice the operations at the device's peak, and no shorter than once."""
    here = machine()
    assert here.times is not None
    seconds = here.prompt_s(20_000)
    assert seconds is not None
    least = 2 * SPEC.parameters_active * 20_000 / (989e12 * 0.5)
    assert least < seconds < 2 * least
    assert seconds > 2 * (here.prompt_s(9_000) or 0)
