"""How many requests there are at once: always the same, or as arrivals and users make it.

Each population knows its generating function: the transform of a sum over as many requests is
that function of the transform of one, which lies within the unit circle.
"""

from __future__ import annotations

import cmath
import math
from dataclasses import dataclass
from typing import TypeAlias

# The exponential of this is what a double cannot tell from nothing beside 1.
_LOG_NOTHING = -36.0
_NOTHING = 1e-300
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

    def generating(self, value: complex) -> complex:
        """The generating function."""
        return value**self.requests if abs(value) > _NOTHING else 0j

    def fades(self, value: complex) -> bool:
        """Whether that is too little to matter."""
        size = abs(value)
        return size < _NOTHING or self.requests * math.log(size) < _LOG_NOTHING

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

    def generating(self, value: complex) -> complex:
        """The generating function."""
        # Rounding can leave a value a little beyond 1, which a vast mean would blow up.
        exponent = self.mean * (value - 1)
        return cmath.exp(exponent if exponent.real <= 0 else exponent.imag * 1j)

    def fades(self, value: complex) -> bool:
        """Whether that is too little to matter."""
        return self.mean * (value.real - 1) < _LOG_NOTHING

    def above(self, most: int) -> float:
        """How likely there are more than ``most``."""
        if most > self.mean + _FAR * (1 + math.sqrt(self.mean)):
            return 0.0
        terms = (
            math.exp(count * math.log(self.mean) - self.mean - math.lgamma(count + 1))
            for count in range(most + 1)
        )
        return max(0.0, 1.0 - math.fsum(terms)) if self.mean > 0 else 0.0


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

    def generating(self, value: complex) -> complex:
        """The generating function."""
        return Constant(self.users).generating(1 - self.share + self.share * value)

    def fades(self, value: complex) -> bool:
        """Whether that is too little to matter."""
        return Constant(self.users).fades(1 - self.share + self.share * value)

    def above(self, most: int) -> float:
        """How likely there are more than ``most``."""
        if self.share >= 1:
            return float(self.users > most)
        terms = (self._exactly(count) for count in range(min(most, self.users) + 1))
        return max(0.0, 1.0 - math.fsum(terms))

    def _exactly(self, count: int) -> float:
        ways = math.lgamma(self.users + 1) - math.lgamma(count + 1)
        ways -= math.lgamma(self.users - count + 1)
        odds = count * math.log(self.share) + (self.users - count) * math.log1p(-self.share)
        return math.exp(ways + odds)


Population: TypeAlias = Constant | Poisson | Users
