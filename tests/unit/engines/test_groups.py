"""vLLM's cache groups: uniform, of one type, hybrid; and the layers of pipeline stages."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvplan.engines.vllm.groups import (
    Group,
    group,
    pipeline_stages,
    without_hybrid_manager,
)
from kvplan.engines.vllm.history import rules_for
from kvplan.engines.vllm.pages import PageSpec
from kvplan.errors import NotModelledError

FULL = PageSpec("full", 16, 100)
WINDOW = PageSpec("window", 16, 100, 1024)
OTHER_WINDOW = PageSpec("window", 16, 100, 128)
CHUNK = PageSpec("chunked", 16, 100, 8192)
LATENT = PageSpec("latent", 64, 1000)
INDEXER = PageSpec("indexer", 64, 130)
NEWEST = "0.33.0"


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
    assert groups_of([FULL] * 32) == (Group(FULL, 32, (3200,)),)
    assert groups_of([WINDOW] * 3) == (Group(WINDOW, 3, (300,)),)


@pytest.mark.parametrize("version", ["0.9.2", NEWEST])
def test_layers_without_a_cache_do_not_count(version: str) -> None:
    assert groups_of([FULL, None, FULL, None], version=version) == (Group(FULL, 2, (200,)),)


@pytest.mark.parametrize("layers", [[], [None], [None, None]])
def test_a_model_without_any_cache_is_refused(layers: list[None]) -> None:
    with pytest.raises(NotModelledError, match="no attention cache; kvplan can't plan it for vLLM"):
        groups_of(layers)


def test_unequal_pages_of_one_kind_are_one_group() -> None:
    # The indexer's layers count: 2 specs a layer.
    assert groups_of([(INDEXER, LATENT)] * 61) == (Group(INDEXER, 122, (61 * 1130,)),)
    small = PageSpec("full", 16, 60)
    assert groups_of([FULL, small, FULL]) == (Group(FULL, 3, (260,)),)


def test_unequal_windows_of_one_length_are_one_group() -> None:
    small = PageSpec("window", 16, 60, 1024)
    assert groups_of([WINDOW, small]) == (Group(WINDOW, 2, (160,)),)


@pytest.mark.parametrize(
    ("layers", "version"),
    [
        ([FULL, PageSpec("full", 16, 60)], "0.10.2"),  # one type forms a group since 0.11
        ([FULL, PageSpec("full", 32, 200)], NEWEST),  # blocks of another size
        ([FULL, PageSpec("window", 16, 60, 1024)], NEWEST),
        ([WINDOW, PageSpec("window", 16, 60, 128)], NEWEST),
        ([FULL, PageSpec("chunked", 16, 60, 1024)], NEWEST),
    ],
)
def test_unequal_pages_of_several_kinds_are_refused(layers: list[PageSpec], version: str) -> None:
    with pytest.raises(NotModelledError, match=r"pages differ in size; .* unifies them yet"):
        groups_of(layers, version=version)


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
    assert found == (Group(FULL, 5, (300, 200)),)
    (mixed,) = groups_of([(INDEXER, LATENT)] * 3, stages=((0, 1), (1, 3)))
    assert mixed.stage_bytes == (1130, 2260)


def test_without_the_hybrid_manager_windows_are_kept_whole() -> None:
    layers: list[tuple[PageSpec, ...]] = [(WINDOW,), (CHUNK,), (), (FULL,), (INDEXER, LATENT)]
    assert without_hybrid_manager(layers) == [(FULL,), (FULL,), (), (FULL,), (INDEXER, LATENT)]


@pytest.mark.parametrize("layers", [[(WINDOW,), (WINDOW,)], [(WINDOW,), (CHUNK,)], []])
def test_without_full_layers_the_hybrid_manager_makes_no_difference(
    layers: list[tuple[PageSpec, ...]],
) -> None:
    assert without_hybrid_manager(layers) == layers


def test_latent_layers_count_as_full() -> None:
    whole = PageSpec("full", 16, 100)
    assert without_hybrid_manager([(LATENT,), (WINDOW,)]) == [(LATENT,), (whole,)]


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


@given(
    st.lists(st.sampled_from([FULL, WINDOW, OTHER_WINDOW, CHUNK]), min_size=1, max_size=60),
    st.sampled_from(["0.9.2", "0.11.2", "0.12.0", "0.18.0", NEWEST]),
    st.integers(1, 4),
)
def test_every_layer_is_in_one_group_and_no_group_is_larger_than_the_rest_need(
    layers: list[PageSpec], version: str, pp: int
) -> None:
    stages = pipeline_stages(len(layers), pp)
    found = groups_of(layers, version=version, stages=stages)
    assert sum(of.layers for of in found) == len(layers)
    assert sum(sum(of.stage_bytes) for of in found) == 100 * len(layers)
    for page in set(layers):
        mine = [of.layers for of in found if of.page == page]
        assert sum(mine) == layers.count(page)
        if version != "0.9.2":  # slices leave the rest to the last
            assert max(mine) - min(mine) <= 1
