"""How likely the requests that are there hold more units than a pool has.

The distribution of the sum is the convolution of as many requests, taken through the Fourier
transform: exact on a grid of units. Where a pool has more units than the grid has cells, a cell is
several units wide and each request is put on the two nearest cells so that its mean stays what it
is. That makes the sum a little more uncertain, never less: the risk errs upwards.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import add

from kvplan.planning.traffic.fourier import transform
from kvplan.planning.traffic.populations import Constant, Population
from kvplan.planning.traffic.seen import Units
from kvplan.planning.traffic.spectrum import Spectrum
from kvplan.workloads.distributions import Atom

CELLS = 8_192
_SPREADS = 30.0
"""Standard deviations of the sum beyond its mean that the grid reaches; what is beyond wraps."""
_LARGEST = 6
"""And so many of the largest requests: where there are few, they decide."""


@dataclass(frozen=True)
class Grid:
    """The units of one request on a grid, for many questions.

    Attributes:
        shift: Units that every request holds at least, where all are counted; they need no grid.
        width: Units of a cell.
        cells: How many there are.
        atoms: Units of a request and shares.
    """

    shift: int
    width: int
    cells: int
    atoms: tuple[Atom, ...]

    @cached_property
    def parts(self) -> list[float]:
        """The share of requests on each cell."""
        parts, shift, width = [0.0] * self.cells, self.shift, self.width
        for count, share in self.atoms:
            cell, beyond = divmod(count - shift, width)
            parts[cell] += share * (width - beyond) / width
            if beyond:
                parts[cell + 1] += share * beyond / width
        return parts

    @cached_property
    def spectrum(self) -> Spectrum:
        """The transform of that."""
        return Spectrum(tuple(transform(self.parts)[: self.cells // 2 + 1]), self.cells)

    def risk(self, population: Population, units: int) -> float:
        """The probability that they hold more than ``units`` together."""
        left = units - self.shift * (population.requests if isinstance(population, Constant) else 0)
        last = left // self.width
        if left < 0:
            return 1.0
        if last >= self.cells - 1:
            return 0.0
        return min(1.0, max(0.0, 1.0 - self._up_to(population, last)))

    def _up_to(self, population: Population, last: int) -> float:
        """The probability of cells 0 to ``last``: the inverse transform, summed over them."""
        spectrum = self.spectrum
        places = population.counted(spectrum)
        values = population.generating([spectrum.values[place] for place in places])
        parts = [
            2 * (value * run).real
            for value, run in zip(values, spectrum.runs(last, places), strict=True)
        ]
        if places and places[-1] == self.cells // 2:
            parts[-1] /= 2  # it has no mirror
        whole = (last + 1) * population.generating(spectrum.values[:1])[0].real
        return reduce(add, parts, whole) / self.cells


def grid_for(units: Units, population: Population) -> Grid:
    """A grid wide enough for the sum over ``population`` and for smaller ones."""
    counted = isinstance(population, Constant)
    shift = units.least if counted else 0
    mean, spread = population.mean * (units.mean - shift), _deviation(units, population)
    # Nothing wraps where all requests together can't reach the end.
    most = units.most - shift
    reach = mean + _SPREADS * spread + _LARGEST * most
    if counted:
        reach = min(reach, population.mean * most)
    width = max(1, math.ceil((reach + 1) / CELLS))
    cells = 2 ** max(1, math.ceil(math.log2(reach / width + 2)))
    return Grid(shift, width, cells, units.atoms)


def _deviation(units: Units, population: Population) -> float:
    return math.sqrt(
        population.mean * units.variance + population.variance * units.mean * units.mean
    )


class Grids:
    """Grids of some pools' units, each made once: their transforms take the time."""

    def __init__(self) -> None:
        self._made: dict[tuple[int, int, int, int], Grid] = {}

    def grid_for(self, pool: int, units: Units, population: Population) -> Grid:
        """As `grid_for`, for the pool's units."""
        grid = grid_for(units, population)
        return self._made.setdefault((pool, grid.shift, grid.width, grid.cells), grid)
