"""The hit-rate curve, against caches that are simulated block by block."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("numpy")

from kvplan.planning.simulate.curve import hit_curve
from kvplan.workloads.requests import ContentBlocks, PrefixUse, Request

BLOCK = 512
MOONCAKE = {
    # Whole sample: ids listed, distinct ones. Counted here, not by the publishers.
    "mooncake_conversation.head5000.jsonl": (129_968, 86_649),
    "mooncake_synthetic.head5000.jsonl": (121_877, 43_924),
}


def cache_by_hand(prompts: Iterable[list[object]], capacity: int) -> tuple[int, int]:
    """Hits and blocks of an LRU cache that is asked for whole prompts."""
    cache: OrderedDict[object, None] = OrderedDict()
    hits = blocks = 0
    for prompt in prompts:
        hits += sum(block in cache for block in prompt)
        blocks += len(prompt)
        for block in reversed(prompt):
            cache[block] = None
            cache.move_to_end(block)
        while len(cache) > capacity:
            cache.popitem(last=False)
    return hits, blocks


def request(tokens: int, ids: tuple[int, ...]) -> Request:
    return Request(0.0, tokens, 1, blocks=ContentBlocks(ids, BLOCK))


def mooncake(path: Path) -> Iterator[Request]:
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        ids = tuple(row["hash_ids"])
        yield Request(
            row["timestamp"] / 1000, row["input_length"], 1, blocks=ContentBlocks(ids, BLOCK)
        )


@st.composite
def trees(draw: st.DrawFn) -> list[tuple[int, ...]]:
    """Prompts whose equal ids have equal ids before them, as hashes of prefixes do."""
    paths = draw(st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=5), max_size=40))
    numbers: dict[tuple[int, ...], int] = {}
    return [
        tuple(numbers.setdefault(tuple(path[: end + 1]), len(numbers)) for end in range(len(path)))
        for path in paths
    ]


@settings(max_examples=60)
@given(trees(), st.integers(1, 30))
def test_every_capacity_equals_a_simulated_cache(
    prompts: list[tuple[int, ...]], capacity: int
) -> None:
    curve = hit_curve([request(len(ids) * BLOCK, ids) for ids in prompts], BLOCK)
    hits, blocks = cache_by_hand([list(ids) for ids in prompts], capacity)
    assert curve.blocks == blocks
    assert curve.hit_rate(capacity) == pytest.approx(hits / blocks if blocks else 0.0)


@pytest.mark.parametrize("name", MOONCAKE)
def test_mooncake_samples_equal_a_simulated_cache(name: str, shared: Path) -> None:
    requests = list(mooncake(shared / "traces" / name))
    whole = [one.blocks.ids[: one.prompt_tokens // BLOCK] for one in requests if one.blocks]
    curve = hit_curve(requests, BLOCK)
    for capacity in (10, 1000, 20_000):
        hits, blocks = cache_by_hand([list(ids) for ids in whole], capacity)
        assert curve.hit_rate(capacity) == pytest.approx(hits / blocks, abs=1e-12)
    every = [block for ids in whole for block in ids]
    assert curve.reuse == pytest.approx(1 - len(set(every)) / len(every), abs=1e-12)


@pytest.mark.parametrize(("name", "known"), MOONCAKE.items())
def test_mooncake_reuse_with_the_blocks_that_are_only_partly_full(
    name: str, known: tuple[int, int], shared: Path
) -> None:
    rows = [
        json.loads(line)["hash_ids"]
        for line in (shared / "traces" / name).read_text(encoding="utf-8").splitlines()
    ]
    listed, distinct = known
    curve = hit_curve([request(len(ids) * BLOCK, tuple(ids)) for ids in rows], BLOCK)
    assert (curve.blocks, curve.distinct) == (listed, distinct)
    assert curve.reuse == pytest.approx(1 - distinct / listed)


def test_what_nobody_shares_takes_room_but_is_never_found() -> None:
    prefix = PrefixUse("system", 2 * BLOCK)
    requests = [Request(float(i), 4 * BLOCK, 1, prefix) for i in range(3)]
    curve = hit_curve(requests, BLOCK)
    assert (curve.blocks, curve.distinct) == (12, 8)
    assert [curve.hit_rate(size) for size in (0, 1, 2, 4)] == [0.0, 2 / 12, 4 / 12, 4 / 12]


def test_points_rise_to_the_reuse_of_a_cache_without_limit() -> None:
    requests = [request(3 * BLOCK, (i % 5 * 3, i % 5 * 3 + 1, i % 5 * 3 + 2)) for i in range(50)]
    curve = hit_curve(requests, BLOCK)
    points = curve.points(1000, marks=(7,))
    rates = [point.hit_rate for point in points]
    assert rates == sorted(rates)
    assert rates[-1] == curve.reuse
    assert 7 in [point.blocks for point in points]
    assert all(point.bytes == 1000 * point.blocks for point in points)
