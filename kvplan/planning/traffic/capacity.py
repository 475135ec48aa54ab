"""The most requests at a chosen risk: always held, arriving, or of users who think in between."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist

from kvplan.engines.base import ReplicaPools
from kvplan.planning.traffic.overflow import Grid, Grids
from kvplan.planning.traffic.populations import Constant, Poisson, Population
from kvplan.planning.traffic.seen import Units

_FINEST = 1e-4
"""Relative width to which a load is narrowed down."""
_WIDER = 1.5


@dataclass(frozen=True, slots=True)
class Held:
    """What a replica holds at a chosen risk.

    Attributes:
        requests: Requests, or their mean where their number moves.
        risk: How likely they hold more than there is, at that number.
        limited_by: The pool that runs out first, or ``sequences``.
    """

    requests: float
    risk: float
    limited_by: str


class Replica:
    """One replica's pools with the units that seen requests hold of them."""

    def __init__(
        self, pools: ReplicaPools, units: Sequence[Units], made: Grids | None = None
    ) -> None:
        """A replica.

        Args:
            pools: Its pools.
            units: Of each, what seen requests hold.
            made: Grids of the same units, to be used again; None: none are made yet.
        """
        self._pools = pools
        self._units = tuple(units)
        self._made = Grids() if made is None else made
        self._judged: dict[Population, float] = {}
        self._grids: dict[tuple[type, int], tuple[float, Grid]] = {}

    @property
    def units(self) -> tuple[Units, ...]:
        """Of each pool, what a seen request holds."""
        return self._units

    def at_most(self, held: Held, risk: float) -> int:
        """Requests that hold too much of no single pool at that risk: an upper bound.

        The true risk lies between that of the tightest pool and the sum over all of them.
        """
        if len(self._units) == 1:
            return int(held.requests)
        most = self._pools.sequences
        return last(
            lambda count: max(self._risks(Constant(count))) <= risk,
            max(1, int(held.requests)),
            most,
        )

    def risk(self, population: Population) -> float:
        """How likely they hold more than there is: no more than the sum over all pools.

        Of one pool that is exact; of several it is a bound, as all may run out at once.
        """
        return min(1.0, math.fsum(self._risks(population)) + self._too_many(population))

    def judged(self, population: Population) -> float:
        """As `risk`, on a grid of its own: what was asked before makes no difference.

        A grid that is kept may have been made for far more requests and be so much coarser.
        """
        if population not in self._judged:
            fresh = Replica(self._pools, self._units, self._made)
            self._judged[population] = fresh.risk(population)
        return self._judged[population]

    def tightest(self, population: Population) -> str:
        """The pool with the highest risk, or ``sequences``."""
        risks = [*self._risks(population), self._too_many(population)]
        names = [*(pool.name for pool in self._pools.pools), "sequences"]
        return names[risks.index(max(risks))]

    def constant(self, risk: float) -> Held:
        """The most requests that can always be there."""
        most = self._pools.sequences
        found = last(lambda count: self.risk(Constant(count)) <= risk, self._guess(risk), most)
        at_end = found == most
        limit = "sequences" if at_end else self.tightest(Constant(found + 1))
        return Held(found, self.risk(Constant(found)), limit)

    def arriving(self, risk: float) -> Held:
        """The most requests on average where they come at random and none waits."""
        low, high = 0.0, max(1.0, float(self._guess(risk)))
        while self.risk(Poisson(high)) <= risk:
            low, high = high, high * 2
        while high - low > _FINEST * high:
            middle = (low + high) / 2
            low, high = (middle, high) if self.risk(Poisson(middle)) <= risk else (low, middle)
        return Held(low, self.risk(Poisson(low)), self.tightest(Poisson(high)))

    def on_average(self) -> float:
        """Requests whose mean units fill the tightest pool: the figure that hides the peaks."""
        held = (
            pool.count / units.mean
            for pool, units in zip(self._pools.pools, self._units, strict=True)
        )
        return min(float(self._pools.sequences), *held)

    def _risks(self, population: Population) -> list[float]:
        return [
            self._grid(index, population).risk(population, pool.count)
            for index, pool in enumerate(self._pools.pools)
        ]

    def _too_many(self, population: Population) -> float:
        return population.above(self._pools.sequences)

    def _grid(self, index: int, population: Population) -> Grid:
        """A grid that is wide enough; it is kept for the next question."""
        key = (type(population), index)
        reach, grid = self._grids.get(key, (0.0, None))
        if grid is None or population.mean > reach:
            reach = population.mean * _WIDER
            grid = self._made.grid_for(index, self._units[index], _scaled(population))
            self._grids[key] = (reach, grid)
        return grid

    def _guess(self, risk: float) -> int:
        """Requests at that risk if their sum were normal."""
        z = NormalDist().inv_cdf(1 - risk)
        guesses = []
        for pool, units in zip(self._pools.pools, self._units, strict=True):
            wobble = z * math.sqrt(units.variance)
            root = (-wobble + math.sqrt(wobble**2 + 4 * units.mean * pool.count)) / (2 * units.mean)
            guesses.append(root * root)
        return min(self._pools.sequences, int(min(guesses)))


def _scaled(population: Population) -> Population:
    """The largest population that a grid for this one is to serve."""
    if isinstance(population, Constant):
        return Constant(math.ceil(population.requests * _WIDER))
    if isinstance(population, Poisson):
        return Poisson(population.mean * _WIDER)
    return population


def last(holds: Callable[[int], bool], guess: int, most: int) -> int:
    """The largest number up to ``most`` that holds, or 0; it is near the guess."""
    low, high, stride = 0, most + 1, max(1, guess // 64)
    probe = min(most, max(1, guess))
    if holds(probe):
        low = probe
        while low + stride < high and holds(low + stride):
            low, stride = low + stride, stride * 2
        high = min(high, low + stride)
    else:
        high = probe
        while high - stride > low and not holds(high - stride):
            high, stride = high - stride, stride * 2
        low = max(low, high - stride)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
