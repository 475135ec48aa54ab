"""The transform of one request's units, with what every population asks of it."""

from __future__ import annotations

import cmath
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

NOTHING = 1e-300
"""A size below this has no logarithm worth taking."""


@dataclass(frozen=True)
class Spectrum:
    """Up to half of the frequencies; the others mirror them.

    Attributes:
        values: The transform by frequency; all lie within the unit circle.
        cells: Cells of the grid.
    """

    values: tuple[complex, ...]
    cells: int

    @cached_property
    def logs(self) -> list[float]:
        """Logarithms of the sizes, endlessly small ones where there is nothing."""
        sizes = map(abs, self.values)
        return [math.log(size) if size >= NOTHING else -math.inf for size in sizes]

    @cached_property
    def falls(self) -> list[float]:
        """The real parts less one."""
        return [value.real - 1 for value in self.values]

    @cached_property
    def _runs(self) -> dict[int, list[complex | None]]:
        return {}

    def runs(self, last: int, places: Sequence[int]) -> list[complex]:
        """Sums of turns over cells 0 to ``last`` at frequencies above 0.

        They are kept until another last cell is asked for.
        """
        if last not in self._runs:
            self._runs.clear()
            self._runs[last] = [None] * len(self.values)
        known, (turns, gaps), after, exp = self._runs[last], _turns(self.cells), last + 1, cmath.exp
        runs: list[complex] = []
        for place in places:
            run = known[place]
            if run is None:
                run = known[place] = (1 - exp(turns[place] * after)) / gaps[place]
            runs.append(run)
        return runs


@lru_cache(maxsize=8)
def _turns(cells: int) -> tuple[list[complex], list[complex]]:
    """By frequency the turn from one cell to the next, and one less its exponential."""
    turns = [2j * math.pi * frequency / cells for frequency in range(cells // 2 + 1)]
    return turns, [1 - cmath.exp(turn) for turn in turns]
