"""A grid of inputs: every combination of their values is a point, the last input moves fastest."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any


@dataclass(frozen=True, slots=True)
class Axis:
    """An input that is varied.

    Attributes:
        name: As in `kvplan.size`, or an engine option's own name.
        values: At least one, all different.
    """

    name: str
    values: tuple[Any, ...]


@dataclass(frozen=True)
class Grid:
    """Axes and the points between them, numbered from 0."""

    axes: tuple[Axis, ...]

    @cached_property
    def size(self) -> int:
        """How many points there are."""
        return math.prod(len(axis.values) for axis in self.axes)

    @cached_property
    def strides(self) -> tuple[int, ...]:
        """For each axis, points from one of its values to the next."""
        strides, step = [], 1
        for axis in reversed(self.axes):
            strides.append(step)
            step *= len(axis.values)
        return tuple(reversed(strides))

    def at(self, point: int) -> dict[str, Any]:
        """The values of a point by the names of the axes."""
        return {
            axis.name: axis.values[point // stride % len(axis.values)]
            for axis, stride in zip(self.axes, self.strides, strict=True)
        }

    def axis(self, name: str) -> Axis | None:
        """The axis of that name, if there is one."""
        return next((axis for axis in self.axes if axis.name == name), None)

    def without(self, *names: str) -> Grid:
        """The grid of the other axes."""
        return Grid(tuple(axis for axis in self.axes if axis.name not in names))

    def line(self, name: str) -> tuple[int, int]:
        """The stride and the length of an axis; (1, 1) where there is none of that name."""
        for axis, stride in zip(self.axes, self.strides, strict=True):
            if axis.name == name:
                return stride, len(axis.values)
        return 1, 1


def first_on_line(outer: int, stride: int, length: int) -> int:
    """The first point of a line along an axis.

    Args:
        outer: The number of the line, i.e. a point of the grid without the axis.
        stride: Points from one value of the axis to the next (`Grid.line`).
        length: Values of the axis.

    >>> first_on_line(3, stride=2, length=5)
    11
    """
    return outer // stride * stride * length + outer % stride


def line_of(point: int, stride: int, length: int) -> int:
    """The number of the line that a point lies on: the inverse of `first_on_line`.

    >>> line_of(13, stride=2, length=5)
    3
    """
    return point // (stride * length) * stride + point % stride
