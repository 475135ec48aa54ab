"""Distributions of lengths in tokens: how one is drawn, and what it is in a list of atoms.

An atom is a length and its share. Laws without an end are cut at ``limit``; the share beyond
falls on the limit, as an engine would cut the request there.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate, pairwise
from random import Random
from statistics import NormalDist
from typing import TypeAlias

from kvplan.errors import UsageError
from kvplan.units import MAX_TOKENS

Atom: TypeAlias = tuple[int, float]
"""Tokens, and the share of requests that have so many."""

_BODY = 200
"""Equal slices of the body of a law."""
_TAIL_STEPS_PER_DECADE, _LAST_DECADE = 12, 7
"""Slices of the tail: each a fixed factor rarer than the one before, down to 1e-7."""


@dataclass(frozen=True, slots=True)
class Fixed:
    """Every request has the same length."""

    tokens: int

    def quantile(self, share: float) -> float:  # noqa: ARG002  the same for every share
        """The length that ``share`` of all requests do not exceed."""
        return self.tokens


@dataclass(frozen=True, slots=True)
class Lognormal:
    """The logarithm is normal.

    Attributes:
        median: Tokens that half of the requests do not exceed.
        sigma: Standard deviation of the natural logarithm.
    """

    median: float
    sigma: float

    def quantile(self, share: float) -> float:
        """The length that ``share`` of all requests do not exceed."""
        return self.median * math.exp(min(700.0, self.sigma * NormalDist().inv_cdf(share)))


@dataclass(frozen=True, slots=True)
class Pareto:
    """The share above a length falls with its power ``-alpha``.

    Attributes:
        minimum: The shortest request.
        alpha: The smaller, the longer the tail; at most 1 means there is no mean but the limit's.
    """

    minimum: float
    alpha: float

    def quantile(self, share: float) -> float:
        """The length that ``share`` of all requests do not exceed."""
        return self.minimum * float(math.exp(min(700.0, -math.log1p(-share) / self.alpha)))


@dataclass(frozen=True, slots=True)
class Histogram:
    """Lengths as they were counted.

    Attributes:
        tokens: Distinct lengths, ascending.
        up_to: For each, the share of requests that do not exceed it; the last is 1.
    """

    tokens: tuple[int, ...]
    up_to: tuple[float, ...]

    def quantile(self, share: float) -> float:
        """The length that ``share`` of all requests do not exceed."""
        return self.tokens[min(bisect_right(self.up_to, share), len(self.tokens) - 1)]


Distribution: TypeAlias = Fixed | Lognormal | Pareto | Histogram


def histogram(counts: Iterable[tuple[int, float]]) -> Histogram:
    """Counts, or shares, of lengths as a distribution; they need not sum to 1.

    Raises:
        UsageError: a length below 0, a negative or endless count, or nothing counted.
    """
    found: dict[int, float] = {}
    for tokens, count in counts:
        if tokens < 0 or not 0 <= count < math.inf:
            raise UsageError(
                f"A histogram cannot have {count} requests of {tokens} tokens.",
                hint="Lengths and counts are 0 or more.",
            )
        found[tokens] = found.get(tokens, 0.0) + count
    kept = sorted((tokens, count) for tokens, count in found.items() if count)
    total = math.fsum(count for _, count in kept)
    if not kept:
        raise UsageError("The histogram is empty.", hint="Give at least one length.")
    shares = [share / total for share in accumulate(count for _, count in kept)]
    return Histogram(tuple(tokens for tokens, _ in kept), (*shares[:-1], 1.0))


def draw(law: Distribution, random: Random, *, limit: int = MAX_TOKENS, least: int = 1) -> int:
    """One length from ``least`` to ``limit`` tokens."""
    # random() may be 0, where a law without a start has no quantile.
    return clipped(law.quantile(random.random() or 0.5), limit, least)


def atoms(law: Distribution, *, limit: int = MAX_TOKENS, least: int = 1) -> tuple[Atom, ...]:
    """The law as lengths with shares: exact where it has finitely many.

    Others are sliced: 200 equal parts, the last of them by ever rarer parts down to one in 10^7.
    """
    if isinstance(law, Fixed):
        return ((clipped(law.tokens, limit, least), 1.0),)
    if isinstance(law, Histogram):
        steps = zip(law.up_to, (0.0, *law.up_to), strict=False)
        shares = [after - before for after, before in steps]
        return merged(zip((clipped(t, limit, least) for t in law.tokens), shares, strict=True))
    edges = _edges()
    slices = pairwise(edges)
    return merged(
        (clipped(law.quantile((low + high) / 2), limit, least), high - low) for low, high in slices
    )


def merged(parts: Iterable[Atom]) -> tuple[Atom, ...]:
    """The same with equal lengths added up, shortest first."""
    found: dict[int, float] = {}
    for tokens, share in parts:
        found[tokens] = found.get(tokens, 0.0) + share
    return tuple(sorted(found.items()))


def clipped(tokens: float, limit: int, least: int) -> int:
    """A length as whole tokens within the limits."""
    return max(least, min(limit, round(min(tokens, float(MAX_TOKENS)))))


def _edges() -> tuple[float, ...]:
    body = [part / _BODY for part in range(_BODY)]
    steps = range(1, _TAIL_STEPS_PER_DECADE * _LAST_DECADE)
    last = 1 / _BODY
    tail = [1 - last * 10 ** (-step / _TAIL_STEPS_PER_DECADE) for step in steps]
    return (*body, *(edge for edge in tail if edge < 1), 1.0)
