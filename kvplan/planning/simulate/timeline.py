"""What a simulation looked like over time, in a bounded number of intervals."""

from __future__ import annotations

from dataclasses import dataclass

from kvplan.simulation import Moment

# Enough for any chart; intervals double in length when there are more.
_MOST = 256


@dataclass(slots=True)
class _Interval:
    seconds: float = 0.0
    used: float = 0.0
    used_max: int = 0
    kept: float = 0.0
    running: float = 0.0
    waiting: float = 0.0

    def add(self, other: _Interval) -> None:
        self.seconds += other.seconds
        self.used += other.used
        self.used_max = max(self.used_max, other.used_max)
        self.kept += other.kept
        self.running += other.running
        self.waiting += other.waiting


class Timeline:
    """Collects states that lasted a while.

    Args:
        width: Seconds of an interval at first.
    """

    def __init__(self, width: float = 1.0) -> None:
        self._width = width
        self._intervals: list[_Interval] = []

    def add(
        self, start: float, seconds: float, *, used: int, kept: int, running: int, waiting: int
    ) -> None:
        """A state that lasted for ``seconds`` from ``start``; it counts where it began."""
        index = int(start / self._width)
        while index >= _MOST:
            self._halve()
            index = int(start / self._width)
        while len(self._intervals) <= index:
            self._intervals.append(_Interval())
        at = self._intervals[index]
        at.seconds += seconds
        at.used += used * seconds
        at.used_max = max(at.used_max, used)
        at.kept += kept * seconds
        at.running += running * seconds
        at.waiting += waiting * seconds

    def moments(self) -> tuple[Moment, ...]:
        """The intervals in order; one in which nothing happened is empty."""
        return tuple(
            _moment(index * self._width, self._width, interval)
            for index, interval in enumerate(self._intervals)
        )

    def _halve(self) -> None:
        pairs = self._intervals
        for first, second in zip(pairs[::2], pairs[1::2], strict=False):
            first.add(second)
        self._intervals = pairs[::2]
        self._width *= 2


def _moment(start: float, width: float, interval: _Interval) -> Moment:
    # Idle time counts as empty; a step that reaches beyond its interval counts where it began.
    over = max(width, interval.seconds)
    return Moment(
        start_s=start,
        seconds=width,
        used=interval.used / over,
        used_max=interval.used_max,
        kept=interval.kept / over,
        running=interval.running / over,
        waiting=interval.waiting / over,
    )
