"""Pages of unequal sizes side by side in a block: which layers share one."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import slow_vllm
from hypothesis import given, settings
from hypothesis import strategies as st
from layer_stacks import Stack, mixed_pages, stacks

from kvplan.engines.vllm.groups import Group, is_uniform_type
from kvplan.engines.vllm.packed import packed_groups
from kvplan.engines.vllm.pages import Kind, PageSpec
from kvplan.errors import EngineRefusesError

# Two caches of every layer, of 10 and 30 bytes a page, and a window's of 40.
SMALL, LARGE = PageSpec("indexer", 256, 10), PageSpec("latent", 256, 30)
WINDOW = PageSpec("latent_window", 64, 40, 128)
STATE = PageSpec("recurrent", 256, 50, held=2)
WHOLE = PageSpec("full", 256, 100)


def packed(
    layers: Sequence[tuple[PageSpec, ...]], stages: Sequence[tuple[int, int]] = ()
) -> tuple[Group, ...]:
    return packed_groups(layers, stages or ((0, len(layers)),))


def shapes(groups: Sequence[Group]) -> list[tuple[str, int, int]]:
    """Kind of the first layer, caches, bytes of a block."""
    return [(of.page.kind, of.layers, of.stage_bytes[0]) for of in groups]


def test_a_pattern_stays_together_and_windows_are_cut_to_as_many_repeats() -> None:
    """Three repeats of 10 + 30 bytes; six windows of 40 are two groups of three: 120 each."""
    found = packed([(WINDOW, SMALL, LARGE), (WINDOW,)] * 3)
    assert shapes(found) == [
        ("latent_window", 3, 120), ("latent_window", 3, 120), ("indexer", 6, 120)
    ]  # fmt: skip
    assert [of.indices for of in found] == [(0, 2, 4), (1, 3, 5), (0, 2, 4, 0, 2, 4)]


# Repeats of the mixed bucket, windows → groups of windows. A group has as many repeats as wastes
# least: of 2 and 3 repeats, groups of 2 waste one place and groups of 3 one: the larger is taken.
@pytest.mark.parametrize(
    ("repeats", "windows", "cut"),
    [
        (3, 6, [3, 3]),
        (2, 3, [3]),
        (3, 5, [3, 2]),  # by 3: one place; by 4: four; by 5: two
        (4, 5, [5]),  # by 4: three; by 5: one
        (2, 7, [2, 2, 2, 1]),  # by 2: one; by 7: five
        (5, 2, [2]),  # never below the mixed bucket's own
        (1, 3, [1, 1, 1]),
    ],
)
def test_repeats_of_a_group(repeats: int, windows: int, cut: list[int]) -> None:
    found = packed([(SMALL, LARGE)] * repeats + [(WINDOW,)] * windows)
    assert shapes(found) == [
        ("indexer", 2 * repeats, 40 * repeats),
        *(("latent_window", size, 40 * size) for size in cut),
    ]


def test_layers_of_a_cut_bucket_are_dealt_out() -> None:
    found = packed([(SMALL, LARGE)] * 2 + [(WINDOW,)] * 4)
    assert [of.indices for of in found] == [(0, 1, 0, 1), (2, 4), (3, 5)]


def test_the_largest_mixed_bucket_is_never_cut() -> None:
    """Two mixed buckets, of four and of two repeats: the floor is four."""
    other = PageSpec("latent_window", 64, 8, 128)
    found = packed([(SMALL, LARGE)] * 4 + [(WINDOW, other)] * 2)
    assert shapes(found) == [("indexer", 8, 160), ("latent_window", 4, 96)]


def test_without_the_same_number_of_each_page_there_is_no_pattern() -> None:
    """Two small, one large: unbalanced, kept whole; windows are cut to what it takes anyway."""
    found = packed([(SMALL, LARGE), (SMALL,)] + [(WINDOW,)] * 5)
    # 10 + 10 + 30 bytes hold one window of 40.
    assert shapes(found) == [("indexer", 3, 50)] + [("latent_window", 1, 40)] * 5


# No bucket mixes pages: states and windows are cut to what a block holds anyway.
@pytest.mark.parametrize(
    ("small", "wholes", "count", "cut"),
    [
        (STATE, 2, 5, [3, 2]),  # 200 bytes hold four states of 50
        (STATE, 2, 4, [4]),
        (STATE, 1, 5, [2, 2, 1]),
        (PageSpec("recurrent", 256, 300, held=2), 2, 3, [1, 1, 1]),  # larger than the block
        (PageSpec("window", 256, 60, 128), 2, 5, [3, 2]),  # 200 bytes hold three
        (WINDOW, 1, 3, [2, 1]),
    ],
)
def test_states_never_widen_a_block(
    small: PageSpec, wholes: int, count: int, cut: list[int]
) -> None:
    found = packed([(WHOLE,)] * wholes + [(small,)] * count)
    assert shapes(found) == [
        ("full", wholes, 100 * wholes),
        *((small.kind, size, small.page_bytes * size) for size in cut),
    ]


def test_states_beside_a_pattern_are_cut_by_both() -> None:
    """By pattern four states are two groups of 2; 120 bytes of block hold two of them."""
    layers = [(SMALL, LARGE)] * 3
    assert shapes(packed([*layers, *[(STATE,)] * 3]))[1:] == [
        ("recurrent", 2, 100),
        ("recurrent", 1, 50),
    ]
    assert shapes(packed([*layers, *[(STATE,)] * 6]))[1:] == [("recurrent", 2, 100)] * 3
    light = PageSpec("recurrent", 256, 1, held=2)
    # They would all fit, but a pattern of 3 repeats allows groups of 3.
    assert shapes(packed([*layers, *[(light,)] * 6]))[1:] == [("recurrent", 3, 3)] * 2


def test_the_widest_of_a_buckets_groups_is_what_states_are_cut_to() -> None:
    """Windows in groups of three and two: three of 40 bytes hold two states of 50, not one.

    Three repeats of 10 + 20 bytes alone would hold one, and then every state were a group.
    """
    pattern = (SMALL, PageSpec("latent", 256, 20))
    found = packed([pattern] * 3 + [(WINDOW,)] * 5 + [(STATE,)] * 6)
    assert shapes(found) == [
        ("indexer", 6, 90), ("latent_window", 3, 120), ("latent_window", 2, 80),
        *[("recurrent", 2, 100)] * 3,
    ]  # fmt: skip


def test_chunks_are_no_states() -> None:
    chunk = PageSpec("chunked", 256, 60, 128)
    found = packed([(WHOLE,), *[(chunk,)] * 5])
    assert shapes(found) == [("full", 1, 100), ("chunked", 5, 300)]


def test_windows_of_unequal_pages_that_do_not_fit_are_refused() -> None:
    """Three windows of 60 and one of 20 beside a block of 100: cut, layers would be lost."""
    wide, narrow = (PageSpec("window", 256, size, 128) for size in (60, 20))
    with pytest.raises(EngineRefusesError, match="groups that share a block") as raised:
        packed([(WHOLE,), *[(wide,)] * 3, (narrow,)])
    assert raised.value.hint == "Use another --kv-dtype or another release."


def test_stages_have_their_own_bytes() -> None:
    found = packed([(WINDOW, SMALL, LARGE), (WINDOW,)] * 3, ((0, 3), (3, 6)))
    # Layers 0 and 2 on the first stage have the pattern, layer 4 on the last.
    assert [of.stage_bytes for of in found] == [(80, 40), (40, 80), (80, 40)]
    assert [of.stage_used for of in found] == [(80, 40), (40, 80), (80, 40)]


def test_padding_of_pages_is_told() -> None:
    padded = PageSpec("latent", 256, 30, padding=7)
    assert packed([(SMALL, padded), (WINDOW,)])[0].stage_used == (33,)


def is_for_packing(pages: Sequence[PageSpec]) -> bool:
    return len({page.page_bytes for page in pages}) > 1 and not is_uniform_type(pages)


PACKED_KINDS: tuple[Kind, ...] = (
    "full",
    "window",
    "latent",
    "indexer",
    "latent_window",
    "recurrent",
    "chunked",
)


@settings(max_examples=400)
@given(
    st.one_of(
        stacks(PACKED_KINDS, versions=("0.33.0",)),
        mixed_pages(("latent", "indexer", "latent_window")),
        mixed_pages(PACKED_KINDS),
    )
)
def test_groups_are_those_that_a_look_at_every_layer_finds(stack: Stack) -> None:
    if not is_for_packing(stack.pages):
        return
    try:
        found = packed_groups(stack.layers, stack.stages)
    except EngineRefusesError:
        with pytest.raises(slow_vllm.RefusedError):
            slow_vllm.packed(dict(enumerate(stack.pages)))
        return
    slow = slow_vllm.packed(dict(enumerate(stack.pages)))
    assert [sorted(of.indices) for of in found] == [sorted(of) for of in slow]
    for place, stage in enumerate(stack.stages):
        widest = max(of.stage_bytes[place] for of in found)
        assert widest == slow_vllm.block_bytes(slow, stage)
    assert sum(of.layers for of in found) == len(stack.pages)
    held = sum(sum(of.stage_bytes) for of in found)
    assert held == sum(page.page_bytes for page in stack.pages)


@given(mixed_pages(PACKED_KINDS))
def test_all_layers_of_a_group_hold_equally_many_blocks(stack: Stack) -> None:
    if not is_for_packing(stack.pages):
        return
    try:
        found = packed_groups(stack.layers, stack.stages)
    except EngineRefusesError:
        return
    for of in found:
        assert is_uniform_type([stack.pages[index] for index in of.indices])
        assert stack.pages[of.indices[0]] == of.page
