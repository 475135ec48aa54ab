"""What holds in every step of every simulation."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simulated import GROUPS, pool, run, scheduler, workloads

from kvplan.engines.base import BlockGroup
from kvplan.planning.simulate.content import Chain, Chunk, Contents
from kvplan.planning.simulate.memory import Hit, Memory
from kvplan.planning.simulate.recorder import Recorder
from kvplan.planning.simulate.scheduler import Scheduler
from kvplan.planning.simulate.sequence import Sequence
from kvplan.planning.simulate.tiers import Tier
from kvplan.workloads.requests import Request

groups = st.sampled_from(list(GROUPS.values()))
blocks = st.integers(12, 80)
tiers = st.sampled_from(
    [
        (),
        (Tier("host", 30, 1e5),),
        (Tier("host", 8, 1e5), Tier("disk", 50, 1e4)),
        (Tier("host", 1, 1e5), Tier("disk", 2, 1e4), Tier("remote", 3, 1e3)),
    ]
)


def held_by_requests(made: Scheduler, memory: Memory) -> int:
    """Blocks in use, counted from what each request says that it holds."""
    holders = [*made._running, *(entry[2] for entry in made._loading), *made._loaded]
    runs = {
        id(run): run.high - run.low
        for sequence in holders
        for chunk in sequence.chain.chunks
        for slot, held in chunk.runs.items()
        if slot < len(memory.groups)
        for run in held
        if run.holders
    }
    own = sum(
        holding.last
        - max(holding.first, min(holding.stored, holding.last))
        + sum(copy[2] for copy in holding.copies)
        for sequence in holders
        for holding in sequence.holdings
    )
    return sum(runs.values()) + own + len(holders) * sum(group.fixed for group in memory.groups)


def kept_by_tiers(memory: Memory, chunks: set[Chunk]) -> list[int]:
    """Blocks in each tier, counted from what each piece of content says."""
    counts = [0] * len(memory.tiers.levels)
    for chunk in chunks:
        for slot, held in chunk.runs.items():
            if slot >= len(memory.groups):
                counts[slot // len(memory.groups) - 1] += sum(run.high - run.low for run in held)
    return counts


@settings(max_examples=60)
@given(workloads(pauses=True), groups, blocks, st.booleans(), tiers)
def test_blocks_never_exceed_the_pool_and_never_leak(
    requests: list[Request],
    of: tuple[BlockGroup, ...],
    count: int,
    whole: bool,  # noqa: FBT001 - hypothesis passes it by position
    behind: tuple[Tier, ...],
) -> None:
    made, memory, recorder = scheduler(
        requests, pool(count, of, sequences=8, admits_whole=whole), tiers=behind
    )
    store, chunks, chain = memory.store, set[Chunk](), Contents.chain

    def noted(self: Contents, request: Request) -> Chain:
        found = chain(self, request)
        chunks.update(found.chunks)
        return found

    with patch.object(Contents, "chain", noted):
        for _ in range(20_000):
            more = made.step()
            assert min(store.empty, store.kept, store.used) >= 0
            assert store.used <= count
            assert len(made._running) <= 8
            assert held_by_requests(made, memory) == store.used
            found = kept_by_tiers(memory, chunks)
            for tier, kept, level in zip(memory.tiers._stores, found, behind, strict=True):
                assert (tier.used, tier.kept) == (0, kept)
                assert tier.kept + tier.empty == level.blocks
            if not more:
                break
        else:
            pytest.fail("it does not end")
    assert store.used == 0
    assert recorder.finished + recorder.refused == recorder.arrived == len(requests)


@settings(max_examples=30)
@given(workloads(shared=False), groups, blocks)
def test_every_requests_tokens_add_up(
    requests: list[Request], of: tuple[BlockGroup, ...], count: int
) -> None:
    computed: list[int] = []
    real = Recorder.computed

    def counted(self: Recorder, tokens: int) -> None:
        computed.append(tokens)
        real(self, tokens)

    asked = pool(count, of, sequences=8)
    with patch.object(Recorder, "computed", counted):
        found = run(requests, asked)
    memory = scheduler((), asked)[1]
    refused = [one for one in requests if memory.most(one.total_tokens - 1) > count]
    assert found.requests.refused == len(refused)
    # The last token of a request is generated but never computed.
    needed = sum(one.total_tokens - 1 for one in requests if one not in refused)
    assert sum(computed) == needed + found.preemptions.recomputed_tokens
    generated = found.throughput.output_tokens_per_s * found.simulated_s
    assert generated == pytest.approx(
        sum(one.output_tokens for one in requests if one not in refused)
    )


@settings(max_examples=30)
@given(workloads(), groups, blocks)
def test_first_admissions_are_in_order_of_arrival(
    requests: list[Request], of: tuple[BlockGroup, ...], count: int
) -> None:
    order: list[int] = []
    real = Recorder.admitted

    def noted(self: Recorder, sequence: Sequence, hit: Hit, now: float) -> None:
        if sequence.admitted_s is None:
            order.append(sequence.number)
        real(self, sequence, hit, now)

    with patch.object(Recorder, "admitted", noted):
        run(requests, pool(count, of, sequences=4))
    assert order == sorted(order)


@settings(max_examples=40)
@given(workloads(), groups, blocks)
def test_who_was_preempted_comes_back_before_anybody_else(
    requests: list[Request], of: tuple[BlockGroup, ...], count: int
) -> None:
    lost: list[int] = []
    early: list[int] = []
    preempted, admitted = Recorder.preempted, Recorder.admitted

    def taken(self: Recorder, sequence: Sequence) -> None:
        lost.append(sequence.number)
        preempted(self, sequence)

    def back(self: Recorder, sequence: Sequence, hit: Hit, now: float) -> None:
        if lost and lost.pop() != sequence.number:
            early.append(sequence.number)
        admitted(self, sequence, hit, now)

    with patch.object(Recorder, "preempted", taken), patch.object(Recorder, "admitted", back):
        run(requests, pool(count, of, sequences=6))
    assert (early, lost) == ([], [])


@settings(max_examples=20)
@given(workloads(), groups, blocks)
def test_the_same_workload_gives_the_same_bytes(
    requests: list[Request], of: tuple[BlockGroup, ...], count: int
) -> None:
    first, second = (run(requests, pool(count, of)).model_dump_json() for _ in range(2))
    assert first == second


@settings(max_examples=30)
@given(workloads(), blocks)
def test_sharing_never_computes_more_in_a_pool_with_room(
    requests: list[Request], count: int
) -> None:
    def tokens(*, caches: bool) -> float:
        found = run(requests, pool(count * 50, caches_prefixes=caches))
        return found.throughput.computed_tokens_per_s * found.simulated_s

    assert tokens(caches=True) <= tokens(caches=False) + 1e-6


@settings(max_examples=30)
@given(workloads(), blocks)
def test_a_tier_never_lowers_what_is_found_by_requests_that_come_alone(
    requests: list[Request], count: int
) -> None:
    requests = [replace(one, arrival_s=1e4 * number) for number, one in enumerate(requests)]
    behind = run(requests, pool(count, sequences=1), tiers=(Tier("host", 10_000, 1e12),))
    alone = run(requests, pool(count, sequences=1))
    assert behind.prefixes.hit_tokens >= alone.prefixes.hit_tokens
