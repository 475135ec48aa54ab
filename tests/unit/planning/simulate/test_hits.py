"""How far a prompt is resident, against the rule written down block by block."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvplan.engines.base import BlockGroup
from kvplan.planning.simulate.content import Chain, Chunk
from kvplan.planning.simulate.hits import first_kept, longest_hit, stretches
from kvplan.planning.simulate.store import Store

SIZE, BLOCKS = 4, 16
FULL = BlockGroup("all", SIZE)


def chain_with(resident: list[set[int]], cuts: list[int]) -> Chain:
    """A chain cut into chunks at these blocks, with blocks resident in a slot a set."""
    ends = sorted({cut for cut in cuts if 0 < cut < BLOCKS} | {BLOCKS})
    chain = Chain([Chunk(end * SIZE) for end in ends])
    for slot, blocks in enumerate(resident):
        store = Store(100)
        for block in sorted(blocks):
            for chunk, low, high in chain.parts(block, block + 1, SIZE):
                store.keep(chunk, slot, low, high)
    return chain


def window_by_hand(resident: set[int], span: int, limit: int) -> int:
    """The search of vLLM from the right for a whole window, else what leads from the start."""
    needed = max(1, math.ceil((span - 1) / SIZE))
    run = 0
    for block in range(limit - 1, -1, -1):
        run = run + 1 if block in resident else 0
        if run >= needed:
            return block + run
    return run


blocks = st.sets(st.integers(0, BLOCKS - 1))
cuts = st.lists(st.integers(0, BLOCKS), max_size=5)
limits = st.integers(0, BLOCKS * SIZE)


@given(blocks, cuts, limits)
def test_groups_that_keep_all_find_what_leads_from_the_start(
    resident: set[int], at: list[int], limit: int
) -> None:
    expected = 0
    while expected in resident and (expected + 1) * SIZE <= limit:
        expected += 1
    chain = chain_with([resident], at)
    assert longest_hit(chain, (FULL,), ((0,),), limit) == expected * SIZE


@given(blocks, cuts, limits, st.integers(1, 30))
def test_windows_find_the_last_whole_window(
    resident: set[int], at: list[int], limit: int, span: int
) -> None:
    chain = chain_with([resident], at)
    window = BlockGroup("window", SIZE, span=span)
    expected = window_by_hand(resident, span, limit // SIZE)
    assert longest_hit(chain, (window,), ((0,),), limit) == expected * SIZE


@given(blocks, blocks, cuts, limits, st.integers(2, 20))
def test_several_groups_agree_on_what_all_of_them_have(
    full: set[int], local: set[int], at: list[int], limit: int, span: int
) -> None:
    chain = chain_with([full, local], at)
    window = BlockGroup("window", SIZE, span=span)
    found = longest_hit(chain, (FULL, window), ((0,), (1,)), limit) // SIZE
    assert set(range(found)) <= full
    needed = set(range(first_kept(window, found * SIZE), found))
    assert needed <= local
    reach = 0
    while reach in full and (reach + 1) * SIZE <= limit:
        reach += 1
    assert found == window_by_hand(local, span, reach)


@given(blocks, blocks, cuts)
def test_places_complete_each_other(one: set[int], two: set[int], at: list[int]) -> None:
    chain = chain_with([one, two], at)
    found = {
        block
        for low, high in stretches(chain, SIZE, (0, 1), 0, BLOCKS)
        for block in range(low, high)
    }
    assert found == one | two


def test_hits_end_where_blocks_of_all_groups_end() -> None:
    chain = chain_with([set(range(7)), set(range(16))], [])
    wide = BlockGroup("window", 2 * SIZE, span=5)
    chunk = chain.chunks[0]
    chunk.runs[1] = []
    Store(100).keep(chunk, 1, 0, 8)
    assert longest_hit(chain, (FULL, wide), ((0,), (1,)), 60) == 24


@pytest.mark.parametrize(
    ("group", "computed", "block"),
    [
        (FULL, 100, 0),
        (BlockGroup("window", 4, span=4), 7, 1),
        (BlockGroup("window", 4, span=4), 6, 0),
        (BlockGroup("chunk", 4, span=16), 33, 8),
        (BlockGroup("chunk", 4, span=16), 15, 0),
    ],
)
def test_first_block_still_needed(group: BlockGroup, computed: int, block: int) -> None:
    assert first_kept(group, computed) == block
