"""Lengths of arriving requests as the few figures that people know them by."""

from __future__ import annotations

import math
from collections.abc import Iterable

from kvplan.traffic_plan import LengthSummary
from kvplan.workloads.distributions import Atom, histogram


def summary_of(lengths: Iterable[Atom]) -> LengthSummary:
    """Mean, percentiles and the longest."""
    parts = tuple(lengths)
    whole = math.fsum([share for _, share in parts])
    # Far fewer lengths than requests: they are merged before they are checked and sorted.
    merged: dict[int, float] = {}
    for tokens, share in parts:
        merged[tokens] = merged.get(tokens, 0.0) + share
    law = histogram(merged.items())
    return LengthSummary(
        mean=math.fsum([tokens * share for tokens, share in parts]) / whole,
        p50=round(law.quantile(0.5)),
        p90=round(law.quantile(0.9)),
        p95=round(law.quantile(0.95)),
        p99=round(law.quantile(0.99)),
        max=law.tokens[-1],
    )
