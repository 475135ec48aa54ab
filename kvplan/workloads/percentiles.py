"""Percentiles that somebody read off a dashboard → the lognormal that fits them best.

In logarithms a lognormal is a straight line over the normal quantiles; the line is the least
squares one, and with two percentiles it meets both.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist

from kvplan.errors import UsageError
from kvplan.workloads.distributions import Lognormal


@dataclass(frozen=True, slots=True)
class Fit:
    """A fitted law beside what was given.

    Attributes:
        law: The lognormal.
        given: Share → tokens as stated.
        fitted: Share → tokens of the law.
    """

    law: Lognormal
    given: tuple[tuple[float, int], ...]
    fitted: tuple[tuple[float, float], ...]

    @property
    def worst(self) -> float:
        """The largest relative difference between the two."""
        pairs = zip(self.given, self.fitted, strict=True)
        return max(abs(fit / tokens - 1) for (_, tokens), (_, fit) in pairs)


def fit(percentiles: Mapping[float, int]) -> Fit:
    """Fits a lognormal to ``{share: tokens}``, such as ``{0.5: 1024, 0.95: 8192}``.

    Raises:
        UsageError: fewer than two percentiles, a share outside 0 to 1, a length below 1, or
            lengths that do not grow.
    """
    given = tuple(sorted(percentiles.items()))
    _check(given)
    normal = NormalDist()
    points = [(normal.inv_cdf(share), math.log(tokens)) for share, tokens in given]
    middle_x = math.fsum(x for x, _ in points) / len(points)
    middle_y = math.fsum(y for _, y in points) / len(points)
    spread = math.fsum((x - middle_x) ** 2 for x, _ in points)
    sigma = math.fsum((x - middle_x) * (y - middle_y) for x, y in points) / spread
    law = Lognormal(median=math.exp(middle_y - sigma * middle_x), sigma=sigma)
    return Fit(law, given, tuple((share, law.quantile(share)) for share, _ in given))


def _check(given: tuple[tuple[float, int], ...]) -> None:
    if len(given) <= 1:
        raise UsageError("One percentile fits any spread.", hint="Give two: p50=1k,p95=8k.")
    for share, tokens in given:
        if not 0 < share < 1 or tokens < 1:
            raise UsageError(
                f"{tokens} tokens at {share:g} is no percentile.",
                hint="Write p50=1k,p95=8k: above 0 and below 100, at least 1 token.",
            )
    for (low, fewer), (high, more) in itertools.pairwise(given):
        if more < fewer:
            raise UsageError(
                f"p{high * 100:g} is {more:,} tokens, less than p{low * 100:g} with {fewer:,}.",
                hint="A higher percentile is at least as long.",
            )
