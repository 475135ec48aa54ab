"""Requests at a chosen risk: searched for, and against a server walked through its time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvplan.engines.base import PoolUnits, ReplicaPools
from kvplan.planning.traffic.capacity import Replica
from kvplan.planning.traffic.populations import Constant, Poisson
from kvplan.planning.traffic.seen import seen, units_of
from kvplan.sources.traces import open_trace
from kvplan.workloads.lengths import Pair
from kvplan.workloads.wording import parse_lengths

BLOCK = 16


def blocks(tokens: int) -> tuple[int, ...]:
    """Full attention in blocks of 16."""
    return (math.ceil(tokens / BLOCK),)


def replica(pairs: Sequence[Pair], count: int, sequences: int = 10**6) -> Replica:
    """One pool of so many blocks."""
    pools = ReplicaPools((PoolUnits("kv", "block", count),), sequences, 1, BLOCK)
    return Replica(pools, units_of(seen(pairs, step=BLOCK).tokens, blocks, 1))


LENGTHS = {
    "fixed": "1k/300",
    "lognormal": "p50=500,p95=2k/p50=200,p95=500",
    "mixture": "70% 500/300 + 30% p50=4k,p95=8k/100",
}
TRACES = {
    "Azure code": "azure2023_code.head5000.csv",
    "Azure conversation": "azure2023_conv.head5000.csv",
    "Mooncake conversation": "mooncake_conversation.head5000.jsonl",
}


class Slots:
    """A server that always has ``count`` requests, moved on in whole steps.

    It shares no code with the analysis: requests are drawn, age, end and are replaced.
    """

    def __init__(self, pairs: Sequence[Pair], count: int, random: Random) -> None:
        self._pairs, self._random = pairs, random
        self._up_to = list(accumulate(share for _, _, share in pairs))
        self._running = [(prompt, output, 0) for prompt, output in self._draw(count)]

    def _draw(self, count: int) -> list[tuple[int, int]]:
        drawn = self._random.choices(self._pairs, cum_weights=self._up_to, k=count)
        return [(prompt, output) for prompt, output, _ in drawn]

    def spread_out(self, most: int) -> None:
        """Moves every slot on by itself: equal lives that begin together would end together."""
        for index in range(len(self._running)):
            self._move(index, self._random.randrange(most))

    def move_on(self, steps: int) -> int:
        """Blocks held after so many steps."""
        return sum(self._move(index, steps) for index in range(len(self._running)))

    def _move(self, index: int, steps: int) -> int:
        prompt, output, age = self._running[index]
        now = age + steps
        while now >= output:
            now -= output
            ((prompt, output),) = self._draw(1)
        self._running[index] = (prompt, output, now)
        return blocks(prompt + now + 1)[0]


def walked_risk(pairs: Sequence[Pair], count: int, most: int, samples: int) -> float:
    """The share of samples, several lives apart, in which the blocks exceed ``most``."""
    random = Random(11)  # noqa: S311
    slots = Slots(pairs, count, random)
    life = math.fsum(output * share for _, output, share in pairs)
    slots.spread_out(round(200 * life))
    pauses = (random.randrange(round(life), round(5 * life)) for _ in range(samples))
    return math.fsum(slots.move_on(pause) > most for pause in pauses) / samples


def check_against_walk(pairs: Sequence[Pair]) -> None:
    """At 2 % risk, analysis and walk agree within four standard errors of the walk."""
    risk, samples = 0.02, 2500
    found = replica(pairs, 10**6)
    mean = 10**6 / found.on_average()
    most = round(60 * mean)
    held = replica(pairs, most).constant(risk)
    walked = walked_risk(pairs, int(held.requests), most, samples)
    error = math.sqrt(risk / samples)
    assert abs(walked - held.risk) <= 4 * error


@pytest.mark.parametrize("name", LENGTHS)
def test_held_requests_agree_with_a_server_walked_through(name: str) -> None:
    pairs = parse_lengths(LENGTHS[name], limit=16_384).lengths.pairs()
    check_against_walk(pairs)


@pytest.mark.parametrize("name", TRACES)
def test_traces_agree_with_a_server_walked_through(shared: Path, name: str) -> None:
    with open_trace(str(shared / "traces" / TRACES[name])) as trace:
        count = 5000
        pairs = [(one.prompt_tokens, one.output_tokens, 1 / count) for one in trace.requests]
    check_against_walk(pairs)


@settings(max_examples=20)
@given(st.integers(50, 2000), st.sampled_from([1e-6, 1e-3, 0.05, 0.5]))
def test_one_more_request_would_be_too_many(count: int, risk: float) -> None:
    found = replica(parse_lengths("70% 50/30 + 30% 200/40").lengths.pairs(), count)
    held = int(found.constant(risk).requests)
    assert found.risk(Constant(held)) <= risk
    assert found.risk(Constant(held + 1)) > risk


@settings(max_examples=20)
@given(st.integers(50, 2000), st.integers(0, 500))
def test_more_blocks_never_hold_fewer(count: int, more: int) -> None:
    pairs = parse_lengths("70% 50/30 + 30% 200/40").lengths.pairs()
    fewer = replica(pairs, count).constant(0.01).requests
    assert replica(pairs, count + more).constant(0.01).requests >= fewer


def test_equal_requests_are_simply_counted() -> None:
    found = replica(parse_lengths("1k").lengths.pairs(), 6399)
    held = found.constant(1e-3)
    assert (held.requests, held.risk, held.limited_by) == (99, 0.0, "kv")


def test_sequences_limit_too() -> None:
    held = replica(parse_lengths("16/16").lengths.pairs(), 10_000, sequences=8).constant(1e-3)
    assert (held.requests, held.limited_by) == (8, "sequences")


def test_not_even_one_request() -> None:
    assert replica(parse_lengths("1k/300").lengths.pairs(), 10).constant(1e-3).requests == 0


def test_arrivals_that_move_hold_fewer_on_average() -> None:
    found = replica(parse_lengths("500/300").lengths.pairs(), 4000)
    arriving, constant = found.arriving(1e-3), found.constant(1e-3)
    assert arriving.requests < constant.requests
    assert found.risk(Poisson(arriving.requests)) <= 1e-3
    assert found.risk(Poisson(arriving.requests * 1.001)) > 1e-3


def test_the_risk_of_several_pools_is_a_bound() -> None:
    pools = ReplicaPools((PoolUnits("a", "block", 400), PoolUnits("b", "block", 400)), 99, 1, BLOCK)
    units = units_of(seen([(100, 200, 1.0)], step=BLOCK).tokens, lambda t: blocks(t) * 2, 2)
    both = Replica(pools, units).risk(Constant(30))
    one = replica([(100, 200, 1.0)], 400).risk(Constant(30))
    assert both == pytest.approx(2 * one)
