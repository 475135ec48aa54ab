"""The picture of one GPU: parts that add up, cells that leave nothing out."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample_plans import SAMPLES, fits

from kvplan.ledger import total
from kvplan.reports.memory_bar import cells, memory_parts


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_parts_add_up_to_the_card(name: str) -> None:
    plan = SAMPLES[name]()
    parts = {part.kind: part.bytes for part in memory_parts(plan)}
    overfull = -sum(min(0, line.bytes) for line in plan.ledger)
    inside = sum(size for kind, size in parts.items() if kind != "missing")
    assert inside == total(plan.ledger) + overfull


def test_a_plan_that_fits_splits_its_cache_into_used_and_spare() -> None:
    parts = {part.kind: part.bytes for part in memory_parts(SAMPLES["fits"]())}
    assert parts["kv"] == 10 * 2048 * 1_310_720
    assert "missing" not in parts


def test_each_replica_is_asked_for_its_share() -> None:
    parts = {part.kind: part.label for part in memory_parts(SAMPLES["two_replicas"]())}
    assert parts["kv"] == "KV cache of 10 requests"


def test_what_is_missing_is_the_cache_of_the_requests_that_do_not_fit() -> None:
    plan = SAMPLES["does_not_fit"]()
    missing = memory_parts(plan)[-1]
    assert missing.label == "missing: KV cache of 37 more requests"
    assert missing.bytes == 50 * 2048 * 1_310_720 - total(plan.ledger, "pool")


def test_an_overfull_card_misses_what_it_lacks_before_any_cache() -> None:
    plan = SAMPLES["too_big"]()
    assert memory_parts(plan)[-1].bytes == -plan.ledger[-1].bytes


SIZES = st.lists(st.integers(0, 2**50), min_size=1, max_size=7)


@given(SIZES, st.integers(7, 140))
def test_cells_fill_the_width_and_show_whatever_is_there(sizes: list[int], width: int) -> None:
    counts = cells(tuple(sizes), width)
    assert sum(counts) == (width if sum(sizes) else 0)
    assert all((count > 0) == (size > 0) for count, size in zip(counts, sizes, strict=True))


@given(SIZES, st.integers(20, 140))
def test_a_larger_part_never_gets_fewer_cells(sizes: list[int], width: int) -> None:
    pairs = sorted(zip(sizes, cells(tuple(sizes), width), strict=True))
    assert all(small <= large + 1 for (_, small), (_, large) in pairwise(pairs))


def test_a_cell_left_over_never_goes_to_a_part_that_is_not_there() -> None:
    assert cells((0, 8965646, 14942743, 95633555), 8)[0] == 0


def test_what_the_budget_does_not_count_may_be_what_is_missing() -> None:
    plan = fits()
    line = plan.ledger[-1].model_copy(update={"section": "outside", "bytes": -7})
    missing = memory_parts(plan.model_copy(update={"ledger": (*plan.ledger[:-1], line)}))[-1]
    assert (missing.label, missing.bytes) == ("missing outside the budget", 7)
