"""A fast Fourier transform in plain Python: a few tens of milliseconds for 8,192 points.

The core has no array library on purpose; this is the only place that would want one.
"""

from __future__ import annotations

import cmath
from collections.abc import Sequence
from functools import lru_cache
from operator import add, mul, sub


def transform(values: Sequence[float]) -> list[complex]:
    """The discrete Fourier transform; the number of values is a power of two.

    >>> [round(abs(part), 6) for part in transform([1.0, 0.0, 0.0, 0.0])]
    [1.0, 1.0, 1.0, 1.0]
    """
    count = len(values)
    held = count
    while held and not values[held - 1]:
        held -= 1
    return _halved(list(map(complex, values)), _roots(count), held)


@lru_cache(maxsize=8)
def _roots(count: int) -> list[complex]:
    return [cmath.exp(-2j * cmath.pi * turn / count) for turn in range(count // 2)]


def _halved(values: list[complex], roots: list[complex], held: int) -> list[complex]:
    """The transform of values that are 0 from place ``held`` on."""
    if held < 2:
        # Most of a grid is empty: what one request holds is far less than what all hold.
        return values[:1] * len(values)
    if len(values) == 4:
        return _of_four(*values)
    fewer = roots[::2]
    even = _halved(values[::2], fewer, (held + 1) // 2)
    odd = _halved(values[1::2], fewer, held // 2)
    turned = list(map(mul, roots, odd))
    return [*map(add, even, turned), *map(sub, even, turned)]


def _of_four(first: complex, second: complex, third: complex, fourth: complex) -> list[complex]:
    """Where most of the calls would end: the transform of four values, written out."""
    sum_even, sum_odd = first + third, second + fourth
    even, odd = first - third, 1j * (second - fourth)
    return [sum_even + sum_odd, even - odd, sum_even - sum_odd, even + odd]
