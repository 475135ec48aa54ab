"""A fast Fourier transform in plain Python: a few tens of milliseconds for 8,192 points.

The core has no array library on purpose; this is the only place that would want one.
"""

from __future__ import annotations

import cmath
from collections.abc import Sequence


def transform(values: Sequence[float]) -> list[complex]:
    """The discrete Fourier transform; the number of values is a power of two.

    >>> [round(abs(part), 6) for part in transform([1.0, 0.0, 0.0, 0.0])]
    [1.0, 1.0, 1.0, 1.0]
    """
    count = len(values)
    roots = [cmath.exp(-2j * cmath.pi * turn / count) for turn in range(count // 2)]
    return _halved(list(map(complex, values)), roots)


def _halved(values: list[complex], roots: list[complex]) -> list[complex]:
    if len(values) == 1:
        return values
    fewer = roots[::2]
    even, odd = _halved(values[::2], fewer), _halved(values[1::2], fewer)
    turned = [root * value for root, value in zip(roots, odd, strict=True)]
    return [a + b for a, b in zip(even, turned, strict=True)] + [
        a - b for a, b in zip(even, turned, strict=True)
    ]
