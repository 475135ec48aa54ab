"""Requests held at a chosen risk, found by simulating places that are always taken.

A place is walked through time: a request comes, its tokens grow step by step, it ends, the next
one comes. Places are added up until what they hold is too much for more than the chosen share of
the time. Nothing of the analysis is in it but the engine's own rule of what a request holds.

All places walk through one long sequence of requests, from random points of it. Each goes on at
another point now and then: requests that all last equally long would keep their distances for
ever, and one draw of those is not what happens on average.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kvplan.engines.base import ReplicaPools
from kvplan.planning.traffic.seen import Life
from kvplan.workloads.lengths import Pair

Integers = NDArray[np.int64]
Units = NDArray[np.int32]
Held = Callable[[int], tuple[int, ...]]

POINTS = 1_000_000
"""Moments that are looked at, unless so many requests are too few or too many for them."""
_A_LIFE = 8
"""And moments of one mean life: neighbouring ones are much alike."""
_STRETCHES = 64
"""Stretches of time, each with other points of the sequence."""
_FEWEST_REQUESTS = 20_000


@dataclass(frozen=True, slots=True)
class Part:
    """Requests that share the same number of their tokens.

    Attributes:
        pairs: Prompts and outputs with shares of any scale.
        held: Units of each pool that one of them holds at so many tokens.
        life: What of their lives is not generating.
    """

    pairs: Sequence[Pair]
    held: Held
    life: Life


def closed_requests(
    parts: Sequence[Part], pools: ReplicaPools, risk: float, *, seed: int = 0
) -> tuple[int, float]:
    """The most requests that can always be there, and how often they hold too much.

    Args:
        parts: The requests; shares are compared over all parts.
        pools: What they share.
        risk: The chosen share of the time.
        seed: Of the drawn order.
    """
    random = np.random.default_rng(seed)
    walked = _walk(parts, pools, random)
    count = walked[0].size
    sums = [np.zeros(count, dtype=np.int64) for _ in walked]
    edges = np.linspace(0, count, _STRETCHES + 1, dtype=np.int64)
    held, found = 0, 0.0
    while held < pools.sequences:
        _add_place(sums, walked, edges, random)
        over = np.zeros(count, dtype=bool)
        for total, pool in zip(sums, pools.pools, strict=True):
            over |= total > pool.count
        now = float(over.mean())
        if now > risk:
            break
        held, found = held + 1, now
    return held, found


def _add_place(
    sums: Sequence[Integers],
    walked: Sequence[Units],
    edges: Integers,
    random: np.random.Generator,
) -> None:
    """One more place that is always taken."""
    count = walked[0].size
    starts = random.integers(count, size=_STRETCHES)
    for low, high, start in zip(edges[:-1], edges[1:], starts, strict=True):
        first = min(high - low, count - start)
        for total, one in zip(sums, walked, strict=True):
            total[low : low + first] += one[start : start + first]
            total[low + first : high] += one[: high - low - first]


def _walk(
    parts: Sequence[Part], pools: ReplicaPools, random: np.random.Generator
) -> tuple[Units, ...]:
    """What one place holds of each pool, moment by moment."""
    shares = np.array([pair[2] for part in parts for pair in part.pairs], dtype=float)
    tables = [_lives(part) for part in parts]
    lasting = np.concatenate([lives[:, 3] for lives in tables])
    mean = float((shares * lasting).sum() / shares.sum())
    every = max(1.0, mean / _A_LIFE)
    requests = max(_FEWEST_REQUESTS, round(POINTS * every / mean))
    order = _order(shares, requests, random)
    ends = np.cumsum(lasting[order])
    at = np.arange(0.0, float(ends[-1]) - every, every)
    at += random.random(at.size) * every
    which = np.searchsorted(ends, at, side="right")
    which = np.minimum(which, requests - 1)
    rows = order[which]
    age = at - (ends[which] - lasting[rows])
    return _units(np.concatenate(tables)[rows], age, _owners(parts)[rows], parts, pools)


def _order(shares: NDArray[np.float64], requests: int, random: np.random.Generator) -> Integers:
    """Which request comes when; each as often as its share says, so that no tail is missed."""
    places = (np.arange(requests) + random.random()) / requests
    up_to = np.cumsum(shares) / shares.sum()
    order = np.minimum(np.searchsorted(up_to, places), len(shares) - 1)
    random.shuffle(order)
    return order


def _lives(part: Part) -> NDArray[np.float64]:
    """For each pair: prompt, output, steps before its first token, steps it lasts; shape (n, 5).

    The last column is how many of the steps before the first token compute the prompt.
    """
    rows = []
    for prompt, output, _ in part.pairs:
        computing, arriving = prompt * part.life.prompt, prompt * part.life.arriving
        kept = part.life.kept(prompt, output) if part.life.kept else 0.0
        before = computing + arriving
        rows.append((prompt, output, before, before + output + kept, computing))
    return np.array(rows, dtype=float)


def _owners(parts: Sequence[Part]) -> Integers:
    return np.repeat(np.arange(len(parts)), [len(part.pairs) for part in parts])


def _units(
    lives: NDArray[np.float64],
    age: NDArray[np.float64],
    owner: Integers,
    parts: Sequence[Part],
    pools: ReplicaPools,
) -> tuple[Units, ...]:
    prompt, output, before, _, computing = lives.T
    with np.errstate(divide="ignore", invalid="ignore"):
        begun = np.where(computing > 0, np.floor(prompt * age / computing) + 1, prompt)
    grown = prompt + np.minimum(output, np.floor(np.maximum(0.0, age - before)) + 1)
    tokens = np.where(age < before, np.minimum(prompt, begun), grown).astype(np.int64)
    found = [np.zeros(age.size, dtype=np.int32) for _ in pools.pools]
    for index, part in enumerate(parts):
        mine = owner == index
        for pool, table in enumerate(_table(part.held, tokens[mine], pools)):
            found[pool][mine] = table
    return tuple(found)


def _table(held: Held, tokens: Integers, pools: ReplicaPools) -> list[Units]:
    """The engine's rule at each number of tokens; it changes only from step to step."""
    cells = -(-tokens // pools.step)
    distinct, place = np.unique(cells, return_inverse=True)
    answers = np.array([held(int(cell) * pools.step) for cell in distinct], dtype=np.int32)
    return [answers[:, pool][place] for pool in range(len(pools.pools))]


def agrees(analysed: int, simulated: int) -> bool:
    """Whether both are the same within 2 %; of fewer than 50 requests, within one.

    >>> agrees(100, 102), agrees(100, 103), agrees(9, 10)
    (True, False, True)
    """
    return abs(analysed - simulated) <= max(1, 0.02 * max(analysed, simulated))
