"""vLLM's cache groups: uniform, of one type, hybrid; and the layers of pipeline stages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
import slow_vllm
from hypothesis import given, settings
from hypothesis import strategies as st
from layer_stacks import KINDS, Stack, stacks

from kvplan.engines.vllm.groups import (
    Group,
    all_whole,
    group,
    is_uniform_type,
    kept_whole,
    pipeline_stages,
    without_hybrid_manager,
)
from kvplan.engines.vllm.history import rules_for
from kvplan.engines.vllm.pages import PageSpec, Sides
from kvplan.errors import EngineRefusesError, NotModelledError

FULL = PageSpec("full", 16, 100)
WINDOW = PageSpec("window", 16, 100, 1024)
OTHER_WINDOW = PageSpec("window", 16, 100, 128)
CHUNK = PageSpec("chunked", 16, 100, 8192)
LATENT = PageSpec("latent", 64, 1000)
INDEXER = PageSpec("indexer", 64, 130)
STATE = PageSpec("recurrent", 16, 100, held=2)
NEWEST = "0.33.0"
RULES = rules_for(NEWEST)


def groups_of(
    layers: Sequence[PageSpec | tuple[PageSpec, ...] | None],
    *,
    version: str = NEWEST,
    stages: Sequence[tuple[int, int]] | None = None,
) -> tuple[Group, ...]:
    """The groups of layers given by their one page, several, or none."""
    pages = [() if p is None else p if isinstance(p, tuple) else (p,) for p in layers]
    return group(pages, stages or ((0, len(layers)),), rules_for(version))


def shapes(groups: Sequence[Group]) -> list[tuple[str, int]]:
    return [(found.page.kind, found.layers) for found in groups]


def test_equal_layers_are_one_group() -> None:
    assert groups_of([FULL] * 32) == (
        Group(FULL, ((FULL, 32),), tuple(range(32)), (3200,), (3200,)),
    )
    assert groups_of([WINDOW] * 3) == (Group(WINDOW, ((WINDOW, 3),), (0, 1, 2), (300,), (300,)),)


@pytest.mark.parametrize("version", ["0.9.2", NEWEST])
def test_layers_without_a_cache_do_not_count(version: str) -> None:
    assert groups_of([FULL, None, FULL, None], version=version) == (
        Group(FULL, ((FULL, 2),), (0, 2), (200,), (200,)),
    )


@pytest.mark.parametrize("layers", [[], [None], [None, None]])
def test_a_model_without_any_cache_is_refused(layers: list[None]) -> None:
    with pytest.raises(NotModelledError, match="no attention cache; kvplan can't plan it for vLLM"):
        groups_of(layers)


def test_unequal_pages_of_one_kind_are_one_group() -> None:
    # The indexer's layers count: 2 specs a layer.
    (found,) = groups_of([(INDEXER, LATENT)] * 61)
    assert (found.page, found.layers) == (INDEXER, 122)
    assert found.indices[:4] == (0, 0, 1, 1)
    assert found.stage_bytes == found.stage_used == (61 * 1130,)
    small = PageSpec("full", 16, 60)
    assert groups_of([FULL, small, FULL]) == (
        Group(FULL, ((FULL, 2), (small, 1)), (0, 1, 2), (260,), (260,)),
    )


def test_unequal_windows_of_one_length_are_one_group() -> None:
    small = PageSpec("window", 16, 60, 1024)
    assert groups_of([WINDOW, small]) == (
        Group(WINDOW, ((WINDOW, 1), (small, 1)), (0, 1), (160,), (160,)),
    )


def test_states_of_one_page_are_one_group_whatever_they_use_of_it() -> None:
    """Two layouts of a state, both padded to 100 bytes: 90 + 70 are used."""
    one, other = replace(STATE, padding=10), replace(STATE, padding=30)
    assert groups_of([one, other]) == (Group(one, ((one, 1), (other, 1)), (0, 1), (200,), (160,)),)
    # Not where a request holds another number of blocks of them.
    longer = replace(STATE, held=3)
    assert shapes(groups_of([STATE, longer])) == [("recurrent", 1), ("recurrent", 1)]


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        # 100 does not divide 150, and up to 0.10 unequal pages need it.
        ("0.10.2", None),
        ("0.11.0", [("full", 2, (250,))]),
    ],
)
def test_one_type_forms_a_group_since_0_11(
    version: str, expected: list[tuple[str, int, tuple[int, ...]]] | None
) -> None:
    layers = [FULL, PageSpec("full", 16, 150)]
    if expected is None:
        with pytest.raises(EngineRefusesError, match=r"cannot bring the pages .* to one size"):
            groups_of(layers, version=version)
        return
    found = groups_of(layers, version=version)
    assert [(of.page.kind, of.layers, of.stage_bytes) for of in found] == expected


def pages_of(groups: Sequence[Group]) -> list[tuple[str, int, int, int]]:
    """Kind, block, page and padding of each group's page."""
    return [
        (of.page.kind, of.page.block_size, of.page.page_bytes, of.page.padding) for of in groups
    ]


# The larger page decides. One that divides it takes longer blocks; what doesn't is padded.
@pytest.mark.parametrize(
    ("small", "unified"),
    [
        (PageSpec("window", 16, 50, 1024), ("window", 32, 100, 0)),
        (PageSpec("window", 16, 25, 1024), ("window", 64, 100, 0)),
        (PageSpec("chunked", 16, 50, 1024), ("chunked", 32, 100, 0)),
        (PageSpec("latent_window", 16, 50, 8), ("latent_window", 32, 100, 0)),
        (PageSpec("window", 16, 60, 1024), ("window", 16, 100, 40)),
        (PageSpec("chunked", 16, 60, 1024), ("chunked", 16, 100, 40)),
        (PageSpec("cross", 16, 60, 1500), ("cross", 16, 100, 40)),
        # A state's page has nothing to do with its block: padded even where it divides.
        (PageSpec("recurrent", 16, 50, held=2), ("recurrent", 16, 100, 50)),
        (PageSpec("recurrent", 16, 60, held=2, padding=5), ("recurrent", 16, 100, 45)),
        # 60 bytes of which 10 are padding already.
        (PageSpec("window", 16, 60, 1024, padding=10), ("window", 16, 100, 50)),
    ],
)
def test_unequal_pages_are_brought_to_the_largest(
    small: PageSpec, unified: tuple[str, int, int, int]
) -> None:
    found = groups_of([FULL, small, FULL, small, small])
    assert pages_of(found) == [("full", 16, 100, 0)] + [unified] * 2
    # Groups of 2 full, 2 and 1 others; what is used is what is not padding.
    assert [of.stage_bytes for of in found] == [(200,), (200,), (100,)]
    used = 100 - unified[3]
    assert [of.stage_used for of in found] == [(200,), (2 * used,), (used,)]


def test_the_larger_page_may_be_a_windows() -> None:
    wide = PageSpec("window", 16, 300, 1024)
    assert pages_of(groups_of([FULL, wide])) == [("full", 48, 300, 0), ("window", 16, 300, 0)]


# What a release cannot do to a page, it refuses.
@pytest.mark.parametrize(
    ("small", "last", "first"),
    [
        (PageSpec("window", 16, 60, 1024), "0.23.0", "0.24.0"),  # attention is padded since 0.24
        (PageSpec("cross", 16, 60, 1500), "0.23.0", "0.24.0"),
        (PageSpec("recurrent", 16, 60, held=2), "0.25.1", "0.26.0"),  # states since 0.26
        (PageSpec("recurrent", 16, 50, held=2), "0.25.1", "0.26.0"),
    ],
)
def test_releases_learned_to_pad(small: PageSpec, last: str, first: str) -> None:
    with pytest.raises(EngineRefusesError, match="cannot bring the pages") as raised:
        groups_of([FULL, small], version=last)
    assert raised.value.hint == "Use a newer release, another --kv-dtype or another --tp."
    assert pages_of(groups_of([FULL, small], version=first))[1][2] == 100


@pytest.mark.parametrize(
    "layers",
    [
        # Rows of a latent cache are addressed as they lie: no padding, and no windows beside.
        [FULL, PageSpec("latent", 64, 60), STATE],
        [FULL, PageSpec("latent", 64, 60), CHUNK],
        [CHUNK, PageSpec("indexer", 64, 60)],
        # A chunk among the windows, and nothing is kept whole.
        [PageSpec("latent", 64, 700), PageSpec("window", 64, 1000, 128), CHUNK],
        # A page that is padded already does not divide again.
        [FULL, PageSpec("window", 16, 50, 1024, padding=2)],
    ],
)
def test_what_no_release_can_make_equal(layers: list[PageSpec]) -> None:
    with pytest.raises(EngineRefusesError, match="cannot bring the pages"):
        groups_of(layers)


def test_windows_beside_a_latent_cache_are_kept_whole_where_nothing_else_helps() -> None:
    """A draft with windows beside MLA, since 0.27: blocks of 64, and nothing is padded."""
    latent, window = PageSpec("latent", 64, 700), PageSpec("window", 64, 1000, 128)
    layers = [latent] * 3 + [window]
    (found,) = groups_of(layers, version="0.27.0")
    assert (found.page, found.layers, found.stage_bytes) == (latent, 4, (3 * 700 + 1000,))
    assert found.stage_used == found.stage_bytes
    with pytest.raises(EngineRefusesError):
        groups_of(layers, version="0.26.1")


def test_windows_beside_a_latent_cache_take_its_blocks() -> None:
    """16 tokens in 260 bytes are 64 tokens in 1,040."""
    layers = [PageSpec("latent", 64, 700), PageSpec("window", 16, 1000, 128)]
    (found,) = groups_of(layers)
    assert (found.layers, found.stage_bytes) == (2, (700 + 4000,))


def test_windows_of_two_lengths_beside_a_latent_cache_are_kept_whole_too() -> None:
    layers = [PageSpec("latent", 16, 700), WINDOW, PageSpec("window", 16, 1000, 128)]
    (found,) = groups_of(layers)
    assert (found.layers, found.stage_bytes) == (3, (700 + 100 + 1000,))


@pytest.mark.parametrize(
    "layers",
    [
        # Pages that divide stay a hybrid.
        [PageSpec("latent", 16, 200), WINDOW],
        [PageSpec("latent", 64, 50), WINDOW],
    ],
)
def test_a_latent_cache_whose_pages_divide_stays_a_hybrid(layers: list[PageSpec]) -> None:
    assert len(groups_of(layers)) == 2


def test_without_a_latent_cache_windows_are_padded_not_kept_whole() -> None:
    assert pages_of(groups_of([FULL, PageSpec("window", 16, 60, 8)]))[1] == ("window", 16, 100, 40)


def test_equal_pages_in_blocks_of_other_sizes_are_two_groups() -> None:
    longer = PageSpec("full", 32, 100)
    assert shapes(groups_of([FULL, longer])) == [("full", 1), ("full", 1)]


def test_windows_of_two_lengths_are_not_of_one_kind() -> None:
    assert shapes(groups_of([WINDOW, OTHER_WINDOW])) == [("window", 1), ("window", 1)]


# The smallest bucket sets the size, unless the largest is below a multiple of it.
@pytest.mark.parametrize(
    ("windows", "wholes", "version", "expected"),
    [
        # Gemma-3-27B
        (52, 10, NEWEST, [("window", 9)] * 4 + [("window", 8)] * 2 + [("full", 10)]),
        # gpt-oss-20b with a draft layer
        (12, 13, NEWEST, [("window", 12), ("full", 13)]),
        (12, 13, "0.12.0", [("window", 12), ("full", 13)]),
        (12, 13, "0.11.2", [("window", 12), ("full", 7), ("full", 6)]),
        # 1.25 and 1.5 times 8, exactly: not below
        (10, 8, "0.17.1", [("window", 5), ("window", 5), ("full", 8)]),
        (9, 8, "0.17.1", [("window", 9), ("full", 8)]),
        (9, 8, "0.11.2", [("window", 5), ("window", 4), ("full", 8)]),
        (10, 8, "0.18.0", [("window", 10), ("full", 8)]),
        (11, 8, NEWEST, [("window", 11), ("full", 8)]),
        (12, 8, NEWEST, [("window", 6), ("window", 6), ("full", 8)]),
        (8, 8, "0.9.2", [("window", 8), ("full", 8)]),
        # the larger bucket may be the full one
        (8, 11, NEWEST, [("window", 8), ("full", 11)]),
        (8, 12, NEWEST, [("window", 8), ("full", 6), ("full", 6)]),
    ],
)
def test_hybrids_are_cut_to_one_size(
    windows: int, wholes: int, version: str, expected: list[tuple[str, int]]
) -> None:
    found = groups_of([WINDOW] * windows + [FULL] * wholes, version=version)
    assert shapes(found) == expected
    assert [of.stage_bytes for of in found] == [(100 * layers,) for _, layers in expected]


def test_three_kinds_are_cut_to_the_smallest() -> None:
    found = groups_of([CHUNK] * 6 + [FULL] * 2 + [WINDOW] * 4)
    assert shapes(found) == [("chunked", 2)] * 3 + [("full", 2)] + [("window", 2)] * 2


def test_buckets_stand_in_order_of_first_use() -> None:
    assert shapes(groups_of([FULL, WINDOW, FULL, WINDOW])) == [("full", 2), ("window", 2)]


def stage_of_each(version: str) -> list[tuple[int, ...]]:
    # Windows in layers 0 to 3, full in 4 and 5; stages of 3 layers.
    layers = [WINDOW] * 4 + [FULL] * 2
    stages = ((0, 3), (3, 6))
    return [of.stage_bytes for of in groups_of(layers, version=version, stages=stages)]


def test_newer_releases_deal_layers_out_and_older_ones_cut_slices() -> None:
    # Every second window from 0.11 on: layers 0, 2 and 1, 3; before, 0, 1 and 2, 3.
    assert stage_of_each("0.11.2") == [(200, 0), (100, 100), (0, 200)]
    assert stage_of_each("0.10.2") == [(200, 0), (100, 100), (0, 200)]
    layers = [WINDOW, WINDOW, WINDOW, WINDOW, FULL, FULL]
    narrow = tuple((index, index + 1) for index in range(6))
    newer = [of.stage_bytes for of in groups_of(layers, stages=narrow)]
    older = [of.stage_bytes for of in groups_of(layers, version="0.10.2", stages=narrow)]
    assert newer[:2] == [(100, 0, 100, 0, 0, 0), (0, 100, 0, 100, 0, 0)]
    assert older[:2] == [(100, 100, 0, 0, 0, 0), (0, 0, 100, 100, 0, 0)]


def test_slices_of_an_older_release_leave_the_rest_to_the_last() -> None:
    found = groups_of([WINDOW] * 5 + [FULL] * 2, version="0.10.2")
    assert shapes(found) == [("window", 2), ("window", 2), ("window", 1), ("full", 2)]


def test_a_group_spreads_over_stages() -> None:
    found = groups_of([FULL] * 5, stages=((0, 3), (3, 5)))
    assert found == (Group(FULL, ((FULL, 5),), (0, 1, 2, 3, 4), (300, 200), (300, 200)),)
    (mixed,) = groups_of([(INDEXER, LATENT)] * 3, stages=((0, 1), (1, 3)))
    assert mixed.stage_bytes == (1130, 2260)


def test_without_the_hybrid_manager_windows_are_kept_whole() -> None:
    layers = [(WINDOW,), (CHUNK,), (), (FULL,)]
    assert without_hybrid_manager(layers, RULES) == [(FULL,), (FULL,), (), (FULL,)]


def test_windows_take_the_blocks_of_the_layers_beside_them() -> None:
    """16 tokens in 100 bytes are 64 in 400."""
    layers = [(INDEXER, LATENT), (WINDOW,)]
    whole = PageSpec("full", 64, 400)
    assert without_hybrid_manager(layers, RULES) == [(INDEXER, LATENT), (whole,)]
    # A compressed window becomes a latent cache.
    state = PageSpec("latent_window", 8, 100, 128)
    assert kept_whole([LATENT, state])[state] == PageSpec("latent", 64, 800)


def test_padding_stays_as_far_as_a_longer_block_leaves_it() -> None:
    """80 of 100 bytes are used; twice the tokens use 160, and nothing is padded."""
    padded = PageSpec("window", 16, 100, 128, padding=20)
    assert kept_whole([padded, PageSpec("full", 32, 9)])[padded] == PageSpec("full", 32, 160)
    assert kept_whole([padded, FULL])[padded] == PageSpec("full", 16, 100, padding=20)


def test_windows_keep_their_blocks_where_full_layers_have_several() -> None:
    full = [FULL, PageSpec("full", 32, 200)]
    assert kept_whole([*full, WINDOW])[WINDOW] == FULL
    longer = replace(WINDOW, block_size=64)
    assert kept_whole([*full, longer])[longer] == PageSpec("full", 64, 100)


@pytest.mark.parametrize("layers", [[(WINDOW,), (WINDOW,)], [(STATE,)], [(FULL,), (LATENT,)], []])
def test_one_type_needs_no_hybrid_manager(layers: list[tuple[PageSpec, ...]]) -> None:
    layers = [tuple(replace(page, block_size=16) for page in pages) for pages in layers]
    assert without_hybrid_manager(layers, RULES) == layers


@pytest.mark.parametrize(
    "layers",
    [
        [(WINDOW,), (CHUNK,)],  # nothing is full
        [(FULL,), (STATE,)],
        [(WINDOW,), (STATE,)],
        [(FULL,), (PageSpec("cross", 16, 100, 1500),)],
        [(FULL,), (PageSpec("full", 32, 200),)],
    ],
)
def test_what_one_block_table_cannot_serve_is_refused(layers: list[tuple[PageSpec, ...]]) -> None:
    with pytest.raises(EngineRefusesError, match="cannot share one block table") as raised:
        without_hybrid_manager(layers, RULES)
    assert raised.value.hint == "Leave out disable_hybrid_kv_cache_manager."


def test_windows_of_several_lengths_have_no_merged_spec() -> None:
    layers = [(FULL,), (WINDOW,), (OTHER_WINDOW,)]
    with pytest.raises(EngineRefusesError, match="windows of several lengths") as raised:
        without_hybrid_manager(layers, RULES)
    assert raised.value.hint == "Leave out disable_hybrid_kv_cache_manager."
    chunks = [(FULL,), (CHUNK,), (replace(CHUNK, span=9),)]
    with pytest.raises(EngineRefusesError, match="windows of several lengths"):
        without_hybrid_manager(chunks, RULES)
    # Specs are not merged where a latent cache is among them, and a window and a chunk may be.
    latent = replace(LATENT, block_size=16)
    assert len(without_hybrid_manager([*layers, (latent,)], RULES)) == 4
    assert without_hybrid_manager([(FULL,), (WINDOW,), (CHUNK,)], RULES) == [(FULL,)] * 3


def test_unequal_pages_need_uniform_types_without_the_hybrid_manager() -> None:
    layers = [(FULL,), (PageSpec("window", 16, 60, 128),)]
    whole = [(FULL,), (PageSpec("full", 16, 60),)]
    assert without_hybrid_manager(layers, rules_for("0.11.0")) == whole
    with pytest.raises(EngineRefusesError, match="one block table"):
        without_hybrid_manager(layers, rules_for("0.10.2"))


@pytest.mark.parametrize(("version", "page"), [("0.20.0", 384 * 16), ("0.21.0", 320 * 16)])
def test_a_window_kept_whole_counts_its_keys_twice_up_to_0_20(version: str, page: int) -> None:
    """Keys of 192 and values of 128 bytes a token: 16 times 384, or 320."""
    sides = Sides(1, 192, 128)
    full = PageSpec("full", 16, 320 * 16, sides=sides)
    window = PageSpec("window", 16, 320 * 16, 128, sides)
    whole = without_hybrid_manager([(full,), (window,)], rules_for(version))
    assert [pages[0].page_bytes for pages in whole] == [320 * 16, page]


def test_before_v1_every_window_is_kept_whole_whatever_is_beside_it() -> None:
    windows = [(WINDOW,), (CHUNK,), (), (OTHER_WINDOW,)]
    assert all_whole(windows) == [(FULL,), (FULL,), (), (FULL,)]
    assert all_whole([(LATENT,), (FULL,)]) == [(LATENT,), (FULL,)]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (FULL, replace(FULL, page_bytes=5), True),
        (FULL, replace(LATENT, block_size=16), True),
        (LATENT, INDEXER, True),
        (FULL, LATENT, False),  # another block
        (WINDOW, replace(WINDOW, page_bytes=5), True),
        (WINDOW, OTHER_WINDOW, False),
        (WINDOW, replace(WINDOW, kind="chunked"), False),
        (WINDOW, replace(WINDOW, kind="latent_window"), False),
        (FULL, WINDOW, False),
        (STATE, replace(STATE, padding=5), True),
        (STATE, replace(STATE, page_bytes=5), False),
        (STATE, replace(STATE, held=None), False),
        (STATE, replace(STATE, extra=1), False),
    ],
)
def test_what_is_of_one_type(one: PageSpec, other: PageSpec, *, same: bool) -> None:
    assert is_uniform_type([one, other]) is same
    assert is_uniform_type([other, one]) is same


@pytest.mark.parametrize(
    ("layers", "pp", "counts"),
    [
        (32, 1, [32]),
        (32, 4, [8, 8, 8, 8]),
        (33, 4, [8, 8, 9, 8]),  # one more for the second-to-last
        (34, 4, [8, 9, 9, 8]),
        (35, 4, [9, 9, 9, 8]),
        (33, 2, [17, 16]),
        (61, 2, [31, 30]),
        (5, 5, [1, 1, 1, 1, 1]),
        (62, 4, [15, 16, 16, 15]),
        (7, 3, [2, 3, 2]),
        (8, 3, [3, 3, 2]),
    ],
)
def test_the_remainder_goes_to_the_stages_before_the_last(
    layers: int, pp: int, counts: list[int]
) -> None:
    stages = pipeline_stages(layers, pp)
    assert [stop - start for start, stop in stages] == counts


@given(st.integers(1, 200), st.integers(1, 64))
def test_stages_cover_all_layers_once_and_differ_by_one_at_most(layers: int, pp: int) -> None:
    stages = pipeline_stages(layers, pp)
    sizes = [stop - start for start, stop in stages]
    assert len(stages) == pp
    assert sum(sizes) == layers
    assert max(sizes) - min(sizes) <= 1
    assert sizes[-1] == min(sizes)
    assert stages[0][0] == 0
    assert all(left[1] == right[0] for left, right in pairwise(stages))


def planned(stack: Stack) -> tuple[Group, ...] | None:
    try:
        return group(stack.layers, stack.stages, stack.rules)
    except EngineRefusesError:
        return None


def slowly_planned(stack: Stack) -> list[slow_vllm.Layers] | None:
    try:
        return slow_vllm.grouped(dict(enumerate(stack.pages)), stack.rules)
    except slow_vllm.RefusedError:
        return None


@settings(max_examples=600)
@given(stacks())
def test_groups_are_those_that_a_look_at_every_layer_finds(stack: Stack) -> None:
    fast, slow = planned(stack), slowly_planned(stack)
    if fast is None or slow is None:
        assert fast is None
        assert slow is None
        return
    assert [of.indices for of in fast] == [tuple(of) for of in slow]
    assert [of.page for of in fast] == [next(iter(of.values())) for of in slow]
    for place, (start, stop) in enumerate(stack.stages):
        inside = [[page for i, page in of.items() if start <= i < stop] for of in slow]
        assert [of.stage_bytes[place] for of in fast] == [
            sum(page.page_bytes for page in pages) for pages in inside
        ]
        assert [of.stage_used[place] for of in fast] == [
            sum(page.page_bytes - page.padding for page in pages) for pages in inside
        ]


@given(stacks())
def test_no_layer_is_lost_and_no_byte_of_it(stack: Stack) -> None:
    found = planned(stack)
    if found is None:
        return
    assert sum(of.layers for of in found) == len(stack.pages)
    assert sorted(i for of in found for i in of.indices) == list(range(len(stack.pages)))
    # Blocks may have become longer: then the same tokens use the same bytes.
    pages = len({page.page_bytes for page in stack.pages})
    if pages == 1:
        held = sum(sum(of.stage_bytes) for of in found)
        assert held == sum(page.page_bytes for page in stack.pages)
    for of in found:
        assert all(0 <= u <= b for u, b in zip(of.stage_used, of.stage_bytes, strict=True))
        assert len(of.stage_bytes) == len(stack.stages)


@given(stacks())
def test_groups_of_a_hybrid_are_of_one_page_and_nearly_one_size(stack: Stack) -> None:
    found = planned(stack)
    if found is None or len(found) == 1:
        return
    assert len({of.page.page_bytes for of in found}) == 1
    page = found[0].page.page_bytes
    assert all(sum(of.stage_bytes) == page * of.layers for of in found)
    sizes = [of.layers for of in found]
    if not stack.rules.strided_groups:
        return  # slices leave the rest to the last
    for of in found:
        mine = [other.layers for other in found if other.page == of.page]
        assert max(mine) - min(mine) <= 1
    if stack.rules.group_slack is None:
        buckets = {of.page: sum(g.layers for g in found if g.page == of.page) for of in found}
        assert max(sizes) == min(buckets.values())


@given(stacks(KINDS, versions=("0.33.0", "0.20.0", "0.10.2", "0.9.2")))
def test_without_the_hybrid_manager_layers_become_what_a_look_at_each_finds(stack: Stack) -> None:
    rules = replace(stack.rules, key_twice=frozenset())
    fast: list[PageSpec] | None
    slow: list[PageSpec] | None
    try:
        fast = [page for (page,) in without_hybrid_manager(stack.layers, rules)]
    except EngineRefusesError:
        fast = None
    try:
        slow = list(slow_vllm.promoted(dict(enumerate(stack.pages))).values())
        if not rules.uniform_type and len(set(slow)) > 1 and slow != list(stack.pages):
            slow = None
    except slow_vllm.RefusedError:
        slow = None
    assert fast == slow
