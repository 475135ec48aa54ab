"""How likely the requests that are there hold more units than a pool has.

The distribution of the sum is the convolution of as many requests, taken through the Fourier
transform: exact on a grid of units. Where a pool has more units than the grid has cells, a cell is
several units wide and each request is put on the two nearest cells so that its mean stays what it
is. That makes the sum a little more uncertain, never less: the risk errs upwards.
"""

from __future__ import annotations

import cmath
import math
from dataclasses import dataclass
from functools import cached_property

from kvplan.planning.traffic.fourier import transform
from kvplan.planning.traffic.populations import Constant, Population
from kvplan.planning.traffic.seen import Units

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
        parts: The share of requests on each cell.
    """

    shift: int
    width: int
    cells: int
    parts: tuple[float, ...]

    @cached_property
    def frequencies(self) -> tuple[complex, ...]:
        """The transform up to half of its frequencies; the others mirror them."""
        return tuple(transform(self.parts)[: self.cells // 2 + 1])

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
        half, runs = self.cells // 2, self._runs_to(last)
        fades, generating = population.fades, population.generating
        total = (last + 1) * generating(self.frequencies[0]).real
        for frequency, value in enumerate(self.frequencies):
            if not frequency or fades(value):
                continue
            run = runs[frequency]
            if run is None:
                turn = 2j * math.pi * frequency / self.cells
                run = (1 - cmath.exp(turn * (last + 1))) / (1 - cmath.exp(turn))
                runs[frequency] = run
            part = (generating(value) * run).real
            total += part if frequency == half else 2 * part
        return total / self.cells

    def _runs_to(self, last: int) -> list[complex | None]:
        """Sums of turns up to a cell by frequency, as far as they were needed for it so far."""
        if last not in self._runs:
            self._runs.clear()
            self._runs[last] = [None] * len(self.frequencies)
        return self._runs[last]

    @cached_property
    def _runs(self) -> dict[int, list[complex | None]]:
        return {}


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
    return Grid(shift, width, cells, _placed(units, shift=shift, width=width, cells=cells))


def _deviation(units: Units, population: Population) -> float:
    return math.sqrt(
        population.mean * units.variance + population.variance * units.mean * units.mean
    )


def _placed(units: Units, *, shift: int, width: int, cells: int) -> tuple[float, ...]:
    parts = [0.0] * cells
    for count, share in units.atoms:
        cell, beyond = divmod(count - shift, width)
        parts[cell] += share * (width - beyond) / width
        if beyond:
            parts[cell + 1] += share * beyond / width
    return tuple(parts)
