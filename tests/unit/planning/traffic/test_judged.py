"""A risk does not depend on what was asked before it."""

from __future__ import annotations

import pytest

from kvplan.engines.base import PoolUnits, ReplicaPools
from kvplan.planning.traffic.capacity import Replica
from kvplan.planning.traffic.populations import Constant, Poisson, Population
from kvplan.planning.traffic.seen import seen, units_of
from kvplan.workloads.wording import parse_lengths


def _replica() -> Replica:
    pairs = parse_lengths("p50=1k,p95=8k/p50=200,p95=900", limit=100_000).lengths.pairs()
    units = units_of(seen(pairs, step=16).tokens, lambda tokens: (-(-tokens // 16),), 1)
    return Replica(ReplicaPools((PoolUnits("kv", "block", 24_000),), 10**6, 1, 16), units)


@pytest.mark.parametrize("kind", [Poisson, Constant])
def test_a_coarse_grid_of_more_requests_is_not_used(kind: type[Constant | Poisson]) -> None:
    few: Population = kind(90)
    fresh = _replica().risk(few)
    used = _replica()
    used.risk(kind(2000))
    assert used.judged(few) == pytest.approx(fresh, rel=1e-9)
    # The kept grid is wide enough and errs upwards: that is what made a replica too many.
    assert used.risk(few) > fresh * 1.001
