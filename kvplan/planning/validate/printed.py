"""What a printed figure may have been before it was rounded."""

from __future__ import annotations

from kvplan.units import GIB

# Logs print GiB with two digits.
GIB_DIGITS = 2
CONCURRENCY_DIGITS = 2


def byte_ends(gib: float, digits: int = GIB_DIGITS) -> tuple[int, int]:
    """Fewest and most bytes that print as ``gib``; at least one byte.

    >>> byte_ends(1.0)
    (1068373115, 1079110533)
    """
    half = 0.5 * 10.0**-digits
    return max(1, round((gib - half) * GIB)), max(1, round((gib + half) * GIB))


def prints_as(value: float, printed: float, digits: int = CONCURRENCY_DIGITS) -> bool:
    """Whether ``value`` is printed as ``printed``, where a tie may go either way.

    >>> prints_as(2.3649, 2.36), prints_as(2.366, 2.36)
    (True, False)
    """
    return abs(value - printed) <= 0.5 * 10.0**-digits + 1e-9


def between(low: float, value: float, high: float, digits: int = GIB_DIGITS) -> bool:
    """Whether a printed value may lie in an interval."""
    half = 0.5 * 10.0**-digits
    return low - half <= value <= high + half
