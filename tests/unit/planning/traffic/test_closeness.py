"""Where the analysis is only a bound, and how wide that is."""

from __future__ import annotations

from kvplan.engines.base import PoolUnits, ReplicaPools
from kvplan.planning.traffic.capacity import Replica
from kvplan.planning.traffic.closeness import is_close, most_held
from kvplan.planning.traffic.seen import Units

SMALL = Units(((1, 0.5), (40, 0.5)))


def replica(*counts: int, units: Units = SMALL) -> Replica:
    pools = tuple(PoolUnits(f"pool {index}", "block", count) for index, count in enumerate(counts))
    return Replica(ReplicaPools(pools, 10_000, 1, 1), tuple(units for _ in counts))


def test_one_pool_on_a_fine_grid_is_exact() -> None:
    one = replica(3000)
    held = one.constant(0.01)
    assert most_held(one, held, 0.01) == held.requests


def test_two_pools_that_are_equally_tight_leave_a_gap() -> None:
    two, one = replica(3000, 3000), replica(3000)
    held = two.constant(0.01)
    # Both together are held to half of the risk each; at most they hold what one alone does.
    assert held.requests < one.constant(0.01).requests
    assert most_held(two, held, 0.01) == one.constant(0.01).requests


def test_a_pool_that_never_runs_out_costs_nothing() -> None:
    two = replica(3000, 10**6)
    held = two.constant(0.01)
    assert most_held(two, held, 0.01) == held.requests


def test_wide_cells_make_it_a_bound() -> None:
    """Requests of 1 or 100,001 units in a pool of 10 million: cells of thousands of units."""
    wide = replica(10**7, units=Units(((1, 0.5), (100_001, 0.5))))
    held = wide.constant(0.01)
    assert most_held(wide, held, 0.01) >= held.requests
    assert is_close(int(held.requests), most_held(wide, held, 0.01))


def test_few_requests_are_close_and_many_that_differ_are_not() -> None:
    assert is_close(3, 4)
    assert not is_close(3, 5)
    assert is_close(1000, 1020)
    assert not is_close(1000, 1030)
