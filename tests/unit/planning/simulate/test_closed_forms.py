"""Simulations whose answer is known without simulating."""

from __future__ import annotations

from random import Random

import pytest
from simulated import pool, run

from kvplan.engines.base import BlockGroup
from kvplan.planning.simulate.recorder import Limits
from kvplan.planning.simulate.service import Linear
from kvplan.planning.simulate.tiers import Tier
from kvplan.workloads.requests import ContentBlocks, PrefixUse, Request


def test_one_request_takes_its_chunks_and_one_step_a_token() -> None:
    found = run([Request(2.0, 40, 10)], pool(100, batch_tokens=16))
    # 16 + 16 + 8 tokens of the prompt; the third step also gives the first token.
    assert found.latency.first_token is not None
    assert found.latency.whole is not None
    assert found.latency.first_token.mean == 3.0
    assert found.latency.whole.mean == 3.0 + 9.0
    assert found.latency.between_tokens is not None
    assert found.latency.between_tokens.mean == 1.0
    assert found.simulated_s == 2.0 + 12.0
    assert found.steps == 12


def test_it_holds_the_blocks_of_what_it_has_computed() -> None:
    found = run([Request(0.0, 16, 9)], pool(100))
    # 16 tokens in the first step, 24 at the end: 4 blocks, then 5 and 6 for four steps each.
    assert found.used_blocks is not None
    assert found.used_blocks.max == 6
    assert found.used_blocks.mean == pytest.approx((4 + 4 * 5 + 4 * 6) / 9)


def test_a_window_holds_a_bounded_number_of_blocks() -> None:
    window = BlockGroup("window", 4, span=8, most=9)
    found = run([Request(0.0, 16, 200)], pool(100, (window,)))
    assert found.used_blocks is not None
    # 7 tokens before the next one lie in at most 3 blocks of 4, with the one it writes to.
    assert found.used_blocks.p50 <= 3
    assert found.used_blocks.max == 4


def test_steps_take_what_the_user_measured() -> None:
    times = Linear(step_s=1.0, prefill_s=0.5, decode_s=0.25, context_s=0.125)
    found = run([Request(0.0, 4, 3)], pool(100), times)
    # The first decode attends to 5 tokens, the second one to 6.
    assert found.simulated_s == pytest.approx((1 + 4 * 0.5) + 2 * (1 + 0.25) + (5 + 6) * 0.125)


def test_a_queue_with_poisson_arrivals_and_steps_of_one_length_waits_as_m_d_1() -> None:
    random, clock = Random(5), 0.0  # noqa: S311  no secret depends on it
    requests: list[Request] = []
    load = 0.7
    for _ in range(40_000):
        clock += random.expovariate(load)
        requests.append(Request(clock, 16, 1))
    found = run(requests, pool(8, sequences=1, batch_tokens=16))
    assert found.waiting.seconds is not None
    # Pollaczek-Khinchine with a fixed service time of 1.
    assert found.waiting.seconds.mean == pytest.approx(load / (2 * (1 - load)), rel=0.04)
    assert found.running is not None
    assert found.running.mean == pytest.approx(load, rel=0.02)


def test_a_pool_holds_as_many_requests_as_it_has_blocks_for() -> None:
    # 15 + 1 tokens never need a fifth block: five requests of four blocks fill 20.
    found = run([Request(0.0, 15, 2)] * 12, pool(20, batch_tokens=1000))
    assert found.running is not None
    assert found.running.max == 5
    assert found.used_blocks is not None
    assert found.used_blocks.max == 20
    assert found.preemptions.count == 0
    assert found.waiting.for_blocks == 7


def test_who_came_last_is_preempted_and_computes_its_tokens_again() -> None:
    # Both fit with their prompts; growing needs more than there is.
    found = run([Request(0.0, 16, 17)] * 2, pool(10, batch_tokens=1000, caches_prefixes=False))
    assert found.preemptions.count == 1
    assert found.preemptions.requests == 1
    # Ten blocks are gone when both have 20 tokens and want one more.
    assert found.preemptions.recomputed_tokens == 20
    assert found.requests.finished == 2


def test_as_many_run_as_may() -> None:
    found = run([Request(0.0, 4, 5)] * 10, pool(1000, sequences=4))
    assert found.running is not None
    assert found.running.max == 4
    assert found.waiting.for_sequences == 6
    assert found.waiting.for_blocks == 0


@pytest.mark.parametrize(("whole", "preempted"), [(True, 0), (False, 1)])
def test_a_prompt_is_admitted_whole_or_by_its_first_chunk(*, whole: bool, preempted: int) -> None:
    requests = [Request(0.0, 32, 8), Request(0.0, 32, 2)]
    found = run(requests, pool(14, batch_tokens=17, admits_whole=whole, caches_prefixes=False))
    assert found.preemptions.count >= preempted
    assert (found.preemptions.count > 0) == (not whole)


def test_a_shared_prefix_is_computed_once() -> None:
    use = PrefixUse("system", 32)
    found = run([Request(10.0 * i, 40, 2, use) for i in range(5)], pool(200))
    assert found.prefixes.prompt_tokens == 200
    assert found.prefixes.hit_tokens == 4 * 32


def test_the_last_token_of_a_prompt_is_always_computed() -> None:
    ids = ContentBlocks((1, 2), 16)
    found = run([Request(10.0 * i, 32, 1, blocks=ids) for i in range(2)], pool(100))
    assert found.prefixes.hit_tokens == 28


def test_a_conversation_finds_its_earlier_turns() -> None:
    turns = [
        Request(0.0, 20, 12, session="a", turn=0),
        Request(100.0, 44, 4, session="a", turn=1),
    ]
    found = run(turns, pool(100))
    # 31 tokens of the first turn were computed: 7 whole blocks.
    assert found.prefixes.hit_tokens == 28


def test_equal_content_behind_another_beginning_is_not_shared() -> None:
    first = Request(0.0, 32, 1, blocks=ContentBlocks((1, 9), 16))
    other = Request(50.0, 32, 1, blocks=ContentBlocks((2, 9), 16))
    assert run([first, other], pool(100)).prefixes.hit_tokens == 0


def test_evicted_blocks_come_back_from_the_host() -> None:
    def talk(number: int) -> Request:
        return Request(100.0 * number, 32, 1, blocks=ContentBlocks((number % 2 * 7,), 32))

    requests = [talk(number) for number in range(4)]
    alone = run(requests, pool(8))
    behind = run(requests, pool(8), tiers=(Tier("host", 100, 1024.0),))
    assert alone.prefixes.hit_tokens == 0
    assert behind.prefixes.hit_tokens == 2 * 28
    (host,) = behind.prefixes.tiers
    assert host.read_bytes == 2 * 7 * 1024
    assert host.hit_tokens == 2 * 28
    # 7 blocks of 1,024 bytes at 1,024 bytes a second, then a step for the rest of the prompt.
    assert behind.latency.first_token is not None
    assert behind.latency.first_token.max == pytest.approx(8.0)


def test_what_the_host_has_no_room_for_lies_on_the_disk() -> None:
    requests = [Request(100.0 * i, 32, 1, blocks=ContentBlocks((i % 3 * 7,), 32)) for i in range(6)]
    tiers = (Tier("host", 2, 1e6), Tier("disk", 100, 1e6))
    found = run(requests, pool(8), tiers=tiers)
    assert found.prefixes.hit_tokens == 3 * 28
    assert [tier.hit_tokens > 0 for tier in found.prefixes.tiers] == [False, True]


def test_what_can_never_fit_is_refused() -> None:
    requests = [Request(0.0, 100, 1), Request(0.0, 60, 1), Request(0.0, 30, 70)]
    found = run(requests, pool(12), longest=64)
    # Too long for the model; too long for the pool; cut at the model's longest, still too long.
    assert found.requests.refused == 3
    assert run(requests, pool(20), longest=64).requests.cut == 1


def test_goodput_counts_requests_within_the_limits() -> None:
    requests = [Request(0.0, 16, 5), Request(0.0, 16, 5)]
    found = run(requests, pool(100, batch_tokens=16), limits=Limits(first_token_s=1.0))
    assert found.throughput.good_share == 0.5
    tight = run(requests, pool(100), limits=Limits(between_tokens_s=0.5))
    assert tight.throughput.good_share == 0.0
