"""Numbers → places along an axis, and the ticks on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

_WIDE = 8
_MANTISSAS = (1, 2, 5)


@dataclass(frozen=True, slots=True)
class Scale:
    """An axis from ``low`` to ``high``, its ends at the places ``start`` and ``end``.

    Attributes:
        logarithmic: Equal ratios take equal lengths.
    """

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool = False

    def at(self, value: float) -> float:
        """The place of a value; those beyond an end lie on it."""
        value = min(max(value, self.low), self.high)
        if self.logarithmic:
            share = log10(value / self.low) / (log10(self.high / self.low) or 1)
        else:
            share = (value - self.low) / ((self.high - self.low) or 1)
        return self.start + share * (self.end - self.start)


def is_wide(values: Sequence[float]) -> bool:
    """Whether values spread so far that only their logarithms can be told apart."""
    return min(values) > 0 and max(values) >= _WIDE * min(values)


def decades(low: float, high: float) -> tuple[float, ...]:
    """1, 2, 5, 10, 20 ... from at most ``low`` to at least ``high``.

    >>> decades(3, 40)
    (2.0, 5.0, 10.0, 20.0, 50.0)
    """
    steps = [
        mantissa * 10.0**power
        for power in range(floor(log10(low)), ceil(log10(high)) + 1)
        for mantissa in _MANTISSAS
    ]
    first = max(place for place, step in enumerate(steps) if step <= low)
    last = min(place for place, step in enumerate(steps) if step >= high)
    return tuple(steps[first : last + 1])


def even(high: float, count: int = 6) -> tuple[float, ...]:
    """About so many round steps from 0 to at least ``high``.

    >>> even(80, 5)
    (0.0, 20.0, 40.0, 60.0, 80.0)
    """
    rough = high / count if high > 0 else 1.0
    power = 10.0 ** floor(log10(rough))
    step = next(m * power for m in (*_MANTISSAS, 10) if m * power >= rough)
    return tuple(step * place for place in range(ceil(high / step - 1e-9) + 1))


def thinned(values: Sequence[float], most: int) -> tuple[float, ...]:
    """At most so many of the values, the first among them, evenly chosen.

    >>> thinned([1, 2, 3, 4, 5], 3)
    (1, 3, 5)
    """
    return tuple(values[:: max(1, ceil(len(values) / most))])
