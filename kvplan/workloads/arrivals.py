"""When requests come: evenly, at random, in bursts, and with a profile over the day."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from kvplan.errors import UsageError

HOURS = 24
HOUR_S = 3600.0
FLAT = (1.0,) * HOURS
_HIGHEST_PEAK = 12


@dataclass(frozen=True, slots=True)
class DailyProfile:
    """How the rate of arrivals moves over a day.

    Attributes:
        hours: For each hour from midnight its rate relative to the day's mean; the mean is 1.
    """

    hours: tuple[float, ...] = FLAT

    @property
    def peak(self) -> float:
        """The busiest hour's rate over the mean: the peak factor."""
        return max(self.hours)

    def at(self, time_s: float) -> float:
        """The factor at a time of the day, in seconds since midnight."""
        return self.hours[int(time_s // HOUR_S) % HOURS]


EVERY_HOUR_ALIKE = DailyProfile()


def daily_profile(weights: tuple[float, ...]) -> DailyProfile:
    """A profile from 24 counts, rates or weights of any scale.

    Raises:
        UsageError: not 24 of them, one negative or endless, or all 0.
    """
    if len(weights) != HOURS:
        raise UsageError(
            f"A daily profile has 24 hours, not {len(weights)}.",
            hint="Give one weight an hour, from midnight.",
        )
    if not all(0 <= weight < math.inf for weight in weights) or not any(weights):
        raise UsageError(
            "The weights of a day are 0 or more, and not all 0.",
            hint="Give one weight an hour, from midnight.",
        )
    mean = math.fsum(weights) / HOURS
    return DailyProfile(tuple(weight / mean for weight in weights))


def peaked(factor: float) -> DailyProfile:
    """A day of which only the peak factor is known: one wave, highest at noon.

    The wave is the exponential of a cosine, so that the night is quiet but never silent.

    Raises:
        UsageError: a factor below 1, or above 12: half of all requests in one hour.
    """
    if not 1 <= factor <= _HIGHEST_PEAK:
        raise UsageError(
            f"A peak factor of {factor:g} is not possible.",
            hint=f"It is the busiest hour over the mean of the day: from 1 to {_HIGHEST_PEAK}.",
        )
    low, high = 0.0, 100.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if _wave(middle).peak < factor else (low, middle)
    return _wave(high)


def _wave(sharpness: float) -> DailyProfile:
    phases = [math.cos((hour - 12) / HOURS * 2 * math.pi) for hour in range(HOURS)]
    return daily_profile(tuple(math.exp(sharpness * (phase - 1)) for phase in phases))


@dataclass(frozen=True, slots=True)
class Arrivals:
    """A stream of arrivals.

    Attributes:
        rate_per_s: Requests a second, over a whole day.
        spread: Standard deviation of the time between two over its mean: 1 is Poisson, 0 is
            evenly paced, above 1 comes in bursts (gamma distributed).
        profile: How the rate moves over the day.
        start_s: The time of the day at which the stream begins.
    """

    rate_per_s: float
    spread: float = 1.0
    profile: DailyProfile = EVERY_HOUR_ALIKE
    start_s: float = 0.0

    def __post_init__(self) -> None:
        if not 0 < self.rate_per_s < math.inf or not 0 <= self.spread < math.inf:
            raise UsageError(
                "Requests come at a rate above 0 with a spread of 0 or more.",
                hint="Write a rate like 5/s, 300/min or 20k/h.",
            )

    def times(self, random: Random) -> Iterator[float]:
        """Seconds since the start of the stream, ascending, without end.

        Waits are drawn in units of mean waits and stretched hour by hour, so that the spread
        holds at every rate.
        """
        clock, waited = self.start_s, 0.0
        while True:
            waited = _wait(self.spread, random)
            clock = self._after(clock, waited)
            yield clock - self.start_s

    def _after(self, clock: float, waits: float) -> float:
        """The time at which so many mean waits have passed since ``clock``."""
        while True:
            rate = self.rate_per_s * self.profile.at(clock)
            # Counted from the hour's number, so that rounding can't stop the clock.
            hour_end = (math.floor(clock / HOUR_S) + 1) * HOUR_S
            if rate * (hour_end - clock) >= waits and rate:
                return clock + waits / rate
            waits -= rate * (hour_end - clock)
            clock = hour_end


def _wait(spread: float, random: Random) -> float:
    if spread == 0:
        return 1.0
    if spread == 1:
        return random.expovariate(1.0)
    shape = 1 / spread**2
    return random.gammavariate(shape, 1 / shape)
