"""Means and percentiles, of cases or weighted by time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kvplan.simulation import Spread

_SHARES = (0.5, 0.9, 0.95, 0.99)


def spread_of(values: Iterable[float]) -> Spread | None:
    """The spread of cases that count alike; None of none."""
    ordered = sorted(values)
    return spread_over(dict.fromkeys(ordered, 0.0), ordered) if ordered else None


def spread_over(weights: Mapping[float, float], each: Iterable[float] = ()) -> Spread | None:
    """The spread of values by how long each lasted; None where none lasted.

    Args:
        weights: Seconds by value.
        each: Values that count once more each.
    """
    totals = dict(weights)
    for value in each:
        totals[value] = totals.get(value, 0.0) + 1.0
    whole = sum(totals.values())
    if whole <= 0:
        return None
    ordered = sorted(totals)
    p50, p90, p95, p99 = _quantiles(ordered, totals, whole)
    mean = sum(value * weight for value, weight in totals.items()) / whole
    return Spread(mean=mean, p50=p50, p90=p90, p95=p95, p99=p99, max=ordered[-1])


def _quantiles(ordered: list[float], totals: Mapping[float, float], whole: float) -> list[float]:
    """The smallest value that so much of the weight does not exceed, for each share."""
    found: list[float] = []
    shares = iter(_SHARES)
    share = next(shares)
    passed = 0.0
    for value in ordered:
        passed += totals[value]
        while passed >= share * whole * (1 - 1e-12):
            found.append(value)
            share = next(shares, 2.0)
            if len(found) == len(_SHARES):
                return found
    return [*found, *[ordered[-1]] * (len(_SHARES) - len(found))]
