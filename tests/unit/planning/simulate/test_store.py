"""Runs of blocks behave exactly as single blocks in a least-recently-used queue would."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from kvplan.planning.simulate import runs as of_runs
from kvplan.planning.simulate.content import Chunk
from kvplan.planning.simulate.runs import Run
from kvplan.planning.simulate.store import Store

LENGTH, CAPACITY = 12, 20

steps = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, LENGTH), st.integers(1, LENGTH)), max_size=60
)


class Blockwise:
    """The same store, one block at a time: what is resident, who holds it, who goes first."""

    def __init__(self) -> None:
        self.holders: Counter[tuple[int, int]] = Counter()
        self.queue: list[tuple[int, int]] = []
        self.empty = CAPACITY

    def resident(self, block: tuple[int, int]) -> bool:
        return self.holders[block] > 0 or block in self.queue

    def claim(self, count: int) -> None:
        while self.empty < count:
            self.queue.pop(0)
            self.empty += 1
        self.empty -= count

    def take(self, block: tuple[int, int]) -> None:
        if block in self.queue:
            self.queue.remove(block)
        self.holders[block] += 1

    def drop(self, blocks: list[tuple[int, int]]) -> None:
        for block in reversed(blocks):
            self.holders[block] -= 1
            if self.holders[block] == 0:
                self.queue.append(block)


def resident(chunk: Chunk) -> set[int]:
    return {block for run in chunk.runs.get(0, []) for block in range(run.low, run.high)}


@given(steps)
def test_it_keeps_and_evicts_the_same_blocks_as_a_queue_of_blocks(
    moves: list[tuple[int, int, int]],
) -> None:
    store, simple = Store(CAPACITY), Blockwise()
    chunks = [Chunk(LENGTH) for _ in range(3)]
    held: list[tuple[int, int, int, int]] = []
    for which, place, size in moves:
        low, high = place, min(LENGTH, place + size)
        if place % 3 == 0 and held:
            index, low, high, second = held.pop(0)
            store.drop(chunks[index], 0, low, high)
            store.give_back(second)
            simple.drop([(index, block) for block in range(low, high)])
            simple.empty += second
        elif low < high and store.free >= high - low:
            store.claim(high - low)
            second = store.put(chunks[which], 0, low, high)
            held.append((which, low, high, second))
            # Evicted by the claim, or already there: a block at a time.
            simple.claim(high - low)
            there = [block for block in range(low, high) if simple.resident((which, block))]
            assert second == len(there)
            for block in range(low, high):
                simple.take((which, block))
        assert store.empty == simple.empty
        assert store.kept == len(simple.queue)
        for index, chunk in enumerate(chunks):
            expected = {block for block in range(LENGTH) if simple.resident((index, block))}
            assert resident(chunk) == expected
        assert store.used + store.kept + store.empty == CAPACITY


@given(steps)
def test_runs_never_overlap_and_stay_in_order(moves: list[tuple[int, int, int]]) -> None:
    store, chunk = Store(10**6), Chunk(LENGTH)
    for _, place, size in moves:
        high = min(LENGTH, place + size)
        if place < high:
            store.claim(high - place)
            store.put(chunk, 0, place, high)
            held = chunk.runs[0]
            assert all(one.low < one.high for one in held)
            assert all(a.high <= b.low for a, b in pairwise(held))


def test_evicted_blocks_are_told_last_block_first() -> None:
    told: list[tuple[int, int]] = []
    store = Store(4, lambda _chunk, _slot, low, high: told.append((low, high)))
    chunk = Chunk(4)
    store.claim(4)
    store.put(chunk, 0, 0, 4)
    store.drop(chunk, 0, 0, 4)
    store.claim(1)
    store.claim(2)
    assert told == [(3, 4), (1, 3)]
    assert [(run.low, run.high) for run in chunk.runs[0]] == [(0, 1)]


def test_a_tier_keeps_what_it_has_room_for() -> None:
    store, first, second = Store(5), Chunk(9), Chunk(9)
    store.keep(first, 0, 0, 4)
    store.keep(second, 0, 0, 3)
    assert resident(first) == {0, 1}
    assert resident(second) == {0, 1, 2}
    store.keep(first, 0, 0, 9)
    assert store.kept == 5


def test_a_refreshed_block_goes_last() -> None:
    store, first, second = Store(4), Chunk(9), Chunk(9)
    store.keep(first, 0, 0, 2)
    store.keep(second, 0, 0, 2)
    store.refresh(first, 0, 0, 2)
    store.claim(2)
    assert (resident(first), resident(second)) == ({0, 1}, set())


def test_gaps_and_reach() -> None:
    held = [Run(2, 4, 1, None), Run(4, 5, 0, None), Run(8, 9, 1, None)]
    assert list(of_runs.gaps(held, 0, 10)) == [(0, 2), (5, 8), (9, 10)]
    assert list(of_runs.gaps(held, 3, 5)) == []
    assert of_runs.covered(held, 2, 10) == 5
    assert of_runs.covered(held, 3, 4) == 4
    assert of_runs.covered(held, 5, 10) == 5
