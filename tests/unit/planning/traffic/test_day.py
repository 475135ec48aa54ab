"""The fewest replicas, and what searches for them share."""

from __future__ import annotations

import pytest

from kvplan.engines.base import PoolUnits, ReplicaPools
from kvplan.planning.traffic.capacity import Replica
from kvplan.planning.traffic.day import MOST_REPLICAS, Stream, load_of
from kvplan.planning.traffic.fourier import transform
from kvplan.planning.traffic.overflow import Grids, grid_for
from kvplan.planning.traffic.populations import Constant, Poisson, Users
from kvplan.planning.traffic.seen import Units, seen, units_of
from kvplan.planning.traffic.traffic import Demand, Service
from kvplan.traffic_plan import LoadOnPools
from kvplan.workloads.wording import parse_lengths

RATE, STEPS = 30.0, 300.0


def units() -> Units:
    pairs = parse_lengths("p50=1k,p95=8k/p50=200,p95=900", limit=100_000).lengths.pairs()
    return units_of(seen(pairs, step=16).tokens, lambda tokens: (-(-tokens // 16),), 1)[0]


UNITS = units()


def replica(blocks: int = 8_000, made: Grids | None = None) -> Replica:
    pools = ReplicaPools((PoolUnits("kv", "block", blocks),), 512, 1, 16)
    return Replica(pools, (UNITS,), made)


def load(demand: Demand, risk: float, blocks: int = 8_000) -> LoadOnPools:
    service = Service(decode_tokens_per_s=RATE)
    return load_of(replica(blocks), demand, service, steps=STEPS, replicas=2, risk=risk)


@pytest.mark.parametrize("risk", [1e-6, 1e-3, 0.2])
@pytest.mark.parametrize(
    "demand",
    [
        Demand(rate_per_s=0.4),
        Demand(rate_per_s=7.0),
        Demand(rate_per_s=90.0),
        Demand(users=3),
        Demand(users=2_000, think_s=30.0),
    ],
)
def test_replicas_needed_are_enough_and_one_fewer_is_not(demand: Demand, risk: float) -> None:
    needed = load(demand, risk).replicas_needed
    assert needed is not None
    stream = Stream(demand, STEPS / RATE)
    assert replica().judged(stream.population(1.0, needed)) <= risk
    if needed > 1:
        assert replica().judged(stream.population(1.0, needed - 1)) > risk


@pytest.mark.parametrize("blocks", [1, 40])
def test_no_number_of_replicas_is_enough(blocks: int) -> None:
    assert load(Demand(rate_per_s=1e6), 1e-6, blocks).replicas_needed is None
    beyond = load(Demand(rate_per_s=3e6), 1e-3)
    stream = Stream(Demand(rate_per_s=3e6), STEPS / RATE)
    assert beyond.replicas_needed is None
    assert replica().judged(stream.population(1.0, MOST_REPLICAS)) > 1e-3


@pytest.mark.parametrize("population", [Constant(70), Poisson(55.5), Users(400, 0.15)])
def test_grids_that_are_shared_change_no_risk(population: Constant | Poisson | Users) -> None:
    made = Grids()
    for blocks in (7_000, 9_000):
        replica(blocks, made).constant(0.01)
        replica(blocks, made).arriving(0.01)
    shared, fresh = replica(made=made).risk(population), replica().risk(population)
    assert shared == fresh > 0


def test_a_grid_is_made_once() -> None:
    made = Grids()
    first = made.grid_for(0, UNITS, Poisson(40.0))
    assert made.grid_for(0, UNITS, Poisson(40.0)) is first
    assert made.grid_for(1, UNITS, Poisson(40.0)) is not first
    assert made.grid_for(0, UNITS, Poisson(400.0)) is not first
    assert first == grid_for(UNITS, Poisson(40.0))


@pytest.mark.parametrize("held", [0, 1, 2, 3, 5, 63, 64])
def test_an_empty_end_of_a_grid_is_skipped_rightly(held: int) -> None:
    values = [1.0 / (place + 1) for place in range(held)] + [0.0] * (64 - held)
    # Values that are too small to count keep the transform from skipping any.
    full = [value or 1e-40 for value in values]
    assert transform(values) == pytest.approx(transform(full), abs=1e-30)
