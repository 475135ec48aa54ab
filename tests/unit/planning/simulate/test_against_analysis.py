"""What `kvplan traffic` computes, met by simulating it: requests held at a chosen risk."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from simulated import pool
from typing_extensions import override

from kvplan import api
from kvplan.engines.base import BlockGroup
from kvplan.planning.simulate.memory import Memory
from kvplan.planning.simulate.recorder import Limits, Recorder
from kvplan.planning.simulate.scheduler import Scheduler
from kvplan.planning.simulate.service import Linear
from kvplan.planning.simulate.tiers import Tiers
from kvplan.planning.traffic.replica import Measured, measure
from kvplan.planning.traffic.traffic import Service, Traffic
from kvplan.sources.gpus import find_gpus
from kvplan.sources.traces import open_trace
from kvplan.workloads.requests import Request
from kvplan.workloads.wording import parse_lengths

RISK = 0.01
Pairs = list[tuple[int, int]]

# Rare long requests are seen in a larger pool, where they are many: times this, and requests.
GPU_BYTES = 56 * 2**30
DRAWN = {
    "fixed": "1000/300",
    "lognormal": "lognormal:median=1k,sigma=0.9/lognormal:median=200,sigma=0.7",
    "mixture": "70% 1k/300 + 30% 8k/100",
}
TRACES = {
    "Azure code": ("azure2023_code.head5000.csv", 4, 250_000),
    "Azure conversation": ("azure2023_conv.head5000.csv", 1, 30_000),
    "Mooncake conversation": ("mooncake_conversation.head5000.jsonl", 8, 15_000),
}


class Watch(Recorder):
    """Notes the blocks in use in every step of the steady state."""

    def __init__(self, warm_s: float) -> None:
        super().__init__(Limits())
        self.seen: list[int] = []
        self._warm_s = warm_s

    @override
    def step(self, start: float, seconds: float, *, used: int, **other: Any) -> None:
        if start > self._warm_s and other["waiting"]:
            self.seen.append(used)


def always_full(pairs: Pairs, places: int, count: int) -> Iterator[Request]:
    """Enough requests that every place is always taken, every pair equally often."""
    random = Random(3)  # noqa: S311  no secret depends on it
    life = sum(output for _, output in pairs) / len(pairs)
    starts = sorted(random.uniform(0, life) for _ in range(places))
    for number in range(count):
        if number % len(pairs) == 0:
            random.shuffle(pairs)
        prompt, output = pairs[number % len(pairs)]
        yield Request(starts[number] if number < places else life, prompt, output)


def analysed(pairs: Pairs, size: int) -> Measured:
    prepared = api.prepare(
        api.read_spec("meta-llama/Llama-3.1-8B-Instruct", offline=True),
        find_gpus("H100")[0],
        options={"max_num_seqs": 8192, "max_num_batched_tokens": 8192},
        kv_budget=(size * GPU_BYTES,),
    )
    traffic = Traffic(tuple((prompt, output, 1.0) for prompt, output in pairs))
    return measure(prepared, 131_072, traffic, Service())


def check(pairs: Pairs, count: int, size: int = 1) -> None:
    found = analysed(pairs, size)
    held = int(found.replica().constant(RISK).requests)
    blocks = found.left.pools[0].count
    # Whoever was there from the start is gone.
    watch = Watch(warm_s=2 * max(output for _, output in pairs))
    # A pool without limit, a step for every prompt: what is in use is what these requests want.
    place = pool(
        10**8, (BlockGroup("all", 16),), sequences=held, batch_tokens=10**9, caches_prefixes=False
    )
    memory = Memory(place, Tiers((), 1, 1))
    made = Scheduler(memory, Linear(step_s=1.0), watch, longest=10**9)
    made.start(always_full(pairs, held, count))
    while made.step():
        pass
    used = sorted(watch.seen)
    quantile = used[int(len(used) * (1 - RISK))]
    assert quantile / blocks == pytest.approx(1.0, abs=0.02)
    assert sum(one > blocks for one in used) / len(used) <= 1.5 * RISK
    assert sum(used) / len(used) / held == pytest.approx(found.units[0].mean, rel=0.01)


@pytest.mark.parametrize("text", DRAWN.values(), ids=DRAWN)
def test_drawn_lengths(text: str) -> None:
    lengths, random = parse_lengths(text).lengths, Random(1)  # noqa: S311  no secret
    check([lengths.draw(random) for _ in range(10_000)], 30_000)


@pytest.mark.parametrize(("name", "size", "count"), TRACES.values(), ids=TRACES)
def test_traces(name: str, size: int, count: int, shared: Path) -> None:
    with open_trace(str(shared / "traces" / name)) as trace:
        pairs = [(one.prompt_tokens, one.output_tokens) for one in trace.requests]
    check(pairs, count, size)
