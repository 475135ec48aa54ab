"""Why a check can't be made of a record. It never leaves this room: it becomes a reason."""

from __future__ import annotations

from typing import Any, TypeVar

from kvplan.measurement import Measurement
from kvplan.units import GIB, MAX_BYTES

T = TypeVar("T")

# Logs print GiB with two digits: less than half of the last is printed as nothing.
LEAST_GIB = 0.005
MOST_GIB = MAX_BYTES / GIB


class LackingError(Exception):
    """What is missing. The kind of reason comes first; a colon ends it where details follow."""


def need(value: T | None, name: str) -> T:
    """The value of a field that a check can't do without.

    Raises:
        LackingError: the record does not state it.
    """
    if value is None:
        raise LackingError(f"{name} is not stated")
    return value


def need_gib(value: float | None, name: str) -> float:
    """An amount of memory that a check divides by, or plans with.

    Raises:
        LackingError: the record does not state it, or it is no amount of memory of a GPU.
    """
    stated = need(value, name)
    if not LEAST_GIB <= stated <= MOST_GIB:
        raise LackingError(f"{name} is no amount of memory: {stated:g} GiB")
    return stated


def extra(record: Measurement, name: str) -> Any:
    """A field that is none of the contract's, or None."""
    return (record.model_extra or {}).get(name)
