"""A row of small bars: a curve in one line of text."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

_BARS = "▁▂▃▄▅▆▇█"
_ASCII_BARS = "_.-=+*%#"


def sparkline(values: Sequence[float], top: float, *, width: int, ascii_only: bool = False) -> str:
    """The values from left to right, each bar as high as its share of ``top``.

    Args:
        values: Of 0 and more; where there are more than ``width``, the mean of neighbours.
        top: What a full bar stands for.
        width: Characters at most.
        ascii_only: Use no character beyond ASCII.

    >>> sparkline([0, 5, 10, 10, 2], 10, width=5)
    '▁▅██▂'
    """
    bars = _ASCII_BARS if ascii_only else _BARS
    if top <= 0:
        return bars[0] * min(len(values), width)
    steps = len(bars) - 1
    return "".join(bars[round(min(1.0, v / top) * steps)] for v in _squeezed(values, width))


def _squeezed(values: Sequence[float], width: int) -> Sequence[float]:
    if len(values) <= width:
        return values
    edges = [len(values) * index // width for index in range(width + 1)]
    return [sum(values[low:high]) / (high - low) for low, high in pairwise(edges)]
