"""How many requests there are at once: always the same, or as arrivals and users make it.

Each population knows its generating function: the transform of a sum over as many requests is
that function of the transform of one, which lies within the unit circle.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from kvplan.planning.traffic.spectrum import NOTHING, Spectrum

# The exponential of this is what a double cannot tell from nothing beside 1.
_LOG_NOTHING = -36.0
_FAR = 40
"""Standard deviations above which a number of requests never happens."""


@dataclass(frozen=True, slots=True)
class Constant:
    """Always so many: a queue fills every gap at once."""

    requests: int

    @property
    def mean(self) -> float:
        """Requests on average."""
        return self.requests

    @property
    def variance(self) -> float:
        """Variance of the number of requests."""
        return 0.0

    def generating(self, values: Sequence[complex]) -> list[complex]:
        """The generating function."""
        requests = self.requests
        return [value**requests for value in values]

    def counted(self, spectrum: Spectrum) -> list[int]:
        """Frequencies above 0 at which that is not too little to matter."""
        requests, logs = self.requests, enumerate(spectrum.logs)
        return [place for place, log in logs if requests * log >= _LOG_NOTHING and place]

    def above(self, most: int) -> float:
        """How likely there are more than ``most``."""
        return float(self.requests > most)


@dataclass(frozen=True, slots=True)
class Poisson:
    """They come independently of one another and none waits (M/G/∞)."""

    mean: float

    @property
    def variance(self) -> float:
        """Variance of the number of requests."""
        return self.mean

    def generating(self, values: Sequence[complex]) -> list[complex]:
        """The generating function."""
        mean, exp = self.mean, cmath.exp
        powers = [mean * (value - 1) for value in values]
        # Rounding can leave a value a little beyond 1, which a vast mean would blow up.
        return [exp(power if power.real <= 0 else power.imag * 1j) for power in powers]

    def counted(self, spectrum: Spectrum) -> list[int]:
        """Frequencies above 0 at which that is not too little to matter."""
        mean, falls = self.mean, enumerate(spectrum.falls)
        return [place for place, fall in falls if mean * fall >= _LOG_NOTHING and place]

    def above(self, most: int) -> float:
        """How likely there are more than ``most``."""
        if most > self.mean + _FAR * (1 + math.sqrt(self.mean)):
            return 0.0
        if self.mean <= 0:
            return 0.0
        mean, log, exp, lgamma = self.mean, math.log(self.mean), math.exp, math.lgamma
        terms = [exp(count * log - mean - lgamma(count + 1)) for count in range(most + 1)]
        return max(0.0, 1.0 - math.fsum(terms))


@dataclass(frozen=True, slots=True)
class Users:
    """So many users who each wait for an answer a ``share`` of their time, and else think."""

    users: int
    share: float

    @property
    def mean(self) -> float:
        """Requests on average."""
        return self.users * self.share

    @property
    def variance(self) -> float:
        """Variance of the number of requests."""
        return self.users * self.share * (1 - self.share)

    def generating(self, values: Sequence[complex]) -> list[complex]:
        """The generating function."""
        idle, share, users = 1 - self.share, self.share, self.users
        return [(idle + share * value) ** users for value in values]

    def counted(self, spectrum: Spectrum) -> list[int]:
        """Frequencies above 0 at which that is not too little to matter."""
        idle, share, users, log = 1 - self.share, self.share, self.users, math.log
        sizes = [abs(idle + share * value) for value in spectrum.values]
        return [
            place
            for place, size in enumerate(sizes)
            if size >= NOTHING and users * log(size) >= _LOG_NOTHING and place
        ]

    def above(self, most: int) -> float:
        """How likely there are more than ``most``."""
        if self.share >= 1:
            return float(self.users > most)
        return max(0.0, 1.0 - math.fsum(self._up_to(min(most, self.users))))

    def _up_to(self, most: int) -> list[float]:
        """How likely there are 0, 1, ... requests."""
        users, exp, lgamma = self.users, math.exp, math.lgamma
        ways, there, idle = lgamma(users + 1), math.log(self.share), math.log1p(-self.share)
        return [
            exp(
                (ways - lgamma(count + 1) - lgamma(users - count + 1))
                + (count * there + (users - count) * idle)
            )
            for count in range(most + 1)
        ]


Population: TypeAlias = Constant | Poisson | Users
