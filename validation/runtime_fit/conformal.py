"""Ranges that hold for nine starts in ten: a conformal quantile of what was off, pooled over bands.

A start's score is how far the measured cache lies from the predicted one, as a share of what is
uncertain (fitted memory and half a GiB more, times what inputs beyond the known starts of its band
widen it by), over the scale of its band on that side. Where a second sampler may have run, off is
what lies outside of both predictions.

A scale is the mean of what starts of the band were off on that side (a miss beyond all that is
uncertain counts as that), drawn to the mean of all starts by how little the band has. The conformal
quantile of the scores, times the scale, is the range. Starts weigh 1/√n, n being how many their
source has: the H100 sweep is one source.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

# A little above 90 %: what other folds are off by is not quite what new starts are, as few sources
# tell of many constants. The nested folds of `crossval` show what comes of it.
LEVEL = 0.925
# Weight of all bands' starts in the scale of one.
SHRINK = 20.0
# A band of n starts takes its range wider by THIN / (n + 1).
THIN = 1.0


@dataclass(frozen=True)
class Residual:
    """How far a start was off, as a share of what is uncertain; above zero more was left."""

    id: str
    band: int
    value: float
    weight: float


@dataclass(frozen=True)
class Spread:
    """What a cache may have less and more, as shares of what is uncertain; n starts of the band."""

    low: float
    high: float
    n: int


def intervals(residuals: Sequence[Residual], bands: int) -> list[Spread]:
    """The range of each band."""
    below = _scales(residuals, bands, lambda value: max(0.0, -value))
    above = _scales(residuals, bands, lambda value: max(0.0, value))
    scores = [
        (abs(each.value) / (above if each.value > 0 else below)[each.band], each.weight)
        for each in residuals
    ]
    far = quantile(scores, LEVEL)
    found = []
    for band in range(bands):
        n = len({each.id for each in residuals if each.band == band})
        wide = far * (1 + THIN / (n + 1))
        found.append(Spread(wide * below[band], wide * above[band], n))
    return found


def _scales(
    residuals: Sequence[Residual], bands: int, side: Callable[[float], float]
) -> list[float]:
    def mean(members: Sequence[Residual], more: float = 0.0, weight: float = 0.0) -> float:
        off = sum(each.weight * min(1.0, side(each.value)) for each in members)
        return (off + more * weight) / (sum(each.weight for each in members) + weight)

    overall = mean(residuals)
    return [
        mean([each for each in residuals if each.band == band], overall, SHRINK)
        for band in range(bands)
    ]


def quantile(scores: Sequence[tuple[float, float]], level: float) -> float:
    """The conformal quantile of weighted scores: one more score, larger than all, is counted in.

    That one weighs 1, as the next start of somebody else's does. The largest score where there are
    too few for the level.
    """
    needed = level * (sum(weight for _, weight in scores) + 1)
    ordered = sorted(scores)
    reached = 0.0
    for score, weight in ordered:
        reached += weight
        if reached >= needed:
            return score
    return ordered[-1][0]
