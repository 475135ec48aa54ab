"""Which requests may share which prefix: scope, version, churn and isolation.

A prefix is never shared between tenants unless it is declared global, and content marked as
personal can never be global. Both hold by construction: the tenant is part of the id.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp
from random import Random
from typing import Literal

from kvplan.errors import UsageError
from kvplan.workloads.requests import PrefixUse

Scope = Literal["tenant", "global"]


@dataclass(frozen=True, slots=True)
class PrefixRule:
    """A shared system prompt.

    Attributes:
        name: What it is called.
        tokens: Its length.
        scope: ``tenant``: each tenant has its own copy; ``global``: one for all.
        personal: It holds personal data.
        share: Of the requests, how many begin with it.
        tenants: Tenants that have one, drawn with equal odds.
        change_every_s: A new version comes so often; None: never.
    """

    name: str
    tokens: int
    scope: Scope = "tenant"
    personal: bool = False
    share: float = 1.0
    tenants: int = 1
    change_every_s: float | None = None

    def __post_init__(self) -> None:
        if self.personal and self.scope == "global":
            raise UsageError(
                f"The prefix {self.name!r} holds personal data and cannot be global.",
                hint="Make its scope tenant.",
            )
        if self.tokens < 1 or self.tenants < 1 or not 0 < self.share <= 1:
            raise UsageError(
                f"The prefix {self.name!r} makes no sense.",
                hint="At least 1 token and 1 tenant, and a share above 0 and up to 1.",
            )
        if self.change_every_s is not None and self.change_every_s <= 0:
            raise UsageError(f"The prefix {self.name!r} cannot change every 0 seconds.")

    @property
    def copies(self) -> int:
        """Distinct prefixes of one version."""
        return 1 if self.scope == "global" else self.tenants

    def version(self, time_s: float) -> int:
        """The version that requests of a time begin with, from 0."""
        return 0 if self.change_every_s is None else int(time_s // self.change_every_s)

    def use(self, time_s: float, tenant: int) -> PrefixUse:
        """The prefix as a request of that time and tenant has it."""
        owner = "global" if self.scope == "global" else f"tenant {tenant}"
        return PrefixUse(f"{self.name}/{owner}/{self.version(time_s)}", self.tokens)

    def draw(self, time_s: float, random: Random) -> PrefixUse | None:
        """The prefix of one request, or None for one without."""
        if random.random() >= self.share:
            return None
        return self.use(time_s, random.randrange(self.tenants))

    def versions_alive(self, life_s: float) -> float:
        """Versions held at once on average: an old one lives until its last request is done.

        Right after a change both are held, for about the life of the longest request.

        Args:
            life_s: Seconds that the longest requests last.
        """
        if self.change_every_s is None:
            return 1.0
        return 1.0 + life_s / self.change_every_s

    def hit_rate(self, rate_per_s: float, kept_s: float | None = None) -> float:
        """Share of uses that find their prefix in the cache.

        Args:
            rate_per_s: Arrivals of all requests; those of one copy come as a Poisson stream.
            kept_s: Seconds that an unused prefix stays, or None for as long as its version.

        Each copy of each version has to be computed once, and once more after every pause that
        was longer than ``kept_s``.
        """
        own = rate_per_s * self.share / self.copies
        return max(0.0, 1 - _misses(own, self.change_every_s, kept_s))


def _misses(rate: float, change_every_s: float | None, kept_s: float | None) -> float:
    """How likely the last use before this one was another version's, or is forgotten.

    The version is as old as a uniform part of its life; the wait before a use is exponential.
    """
    if change_every_s is None:
        return 0.0 if kept_s is None else exp(-rate * kept_s)
    known = change_every_s if kept_s is None else min(kept_s, change_every_s)
    young = (1 - exp(-rate * known)) / rate
    return (young + (change_every_s - known) * exp(-rate * known)) / change_every_s
