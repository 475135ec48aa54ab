"""Stack distances, against a stack that is searched reference by reference."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

np = pytest.importorskip("numpy")

from kvplan.planning.simulate import distances  # noqa: E402  needs numpy
from kvplan.planning.simulate.distances import COLD, stack_distances  # noqa: E402


def by_hand(references: list[int]) -> list[int]:
    stack: list[int] = []
    found: list[int] = []
    for block in references:
        if block in stack:
            place = stack.index(block)
            found.append(len(stack) - 1 - place)
            stack.pop(place)
        else:
            found.append(COLD)
        stack.append(block)
    return found


@given(st.lists(st.integers(-3, 12), max_size=200))
def test_equals_a_stack_that_is_searched(references: list[int]) -> None:
    assert stack_distances(np.array(references, dtype=np.int64)).tolist() == by_hand(references)


def test_long_lists_are_cut_into_pieces_that_fit_a_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distances, "_CACHED_BITS", 3)
    references = np.random.default_rng(7).zipf(1.3, 1500) % 300
    assert stack_distances(references).tolist() == by_hand(references.tolist())


def test_a_cache_of_more_blocks_than_the_distance_has_the_block() -> None:
    assert stack_distances(np.array([1, 2, 3, 1, 1, 2])).tolist() == [-1, -1, -1, 2, 0, 2]
