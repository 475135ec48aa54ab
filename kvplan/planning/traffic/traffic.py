"""What is asked: requests with their lengths, how they are served, and how many come."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from kvplan.errors import UsageError
from kvplan.planning.traffic.retention import Retention
from kvplan.planning.traffic.seen import Life
from kvplan.workloads.arrivals import EVERY_HOUR_ALIKE, DailyProfile
from kvplan.workloads.lengths import Pair
from kvplan.workloads.sharing import PrefixRule

LEAST_RISK, MOST_RISK = 1e-9, 0.5


@dataclass(frozen=True, slots=True)
class Part:
    """Requests that share the same number of their tokens.

    Attributes:
        pairs: As `Traffic.pairs`, with the prefix.
        shared: Tokens that they share.
        retention: As `Traffic.retention`, for these lengths.
    """

    pairs: tuple[Pair, ...]
    shared: int
    retention: Retention | None


@dataclass(frozen=True, slots=True)
class Traffic:
    """The requests that arrive.

    Attributes:
        pairs: Prompts and outputs with shares of any scale.
        grows: Outputs are known; else every request has its whole length from the start.
        prefix: A shared prefix that is part of the prompts, or None.
        prefix_in_front: It comes on top of the lengths; else prompts shorter than it lack it.
        retention: How long sessions are kept for their next turn, or None: not at all.
    """

    pairs: tuple[Pair, ...]
    grows: bool = True
    prefix: PrefixRule | None = None
    prefix_in_front: bool = False
    retention: Retention | None = None

    @property
    def in_front(self) -> int:
        """Tokens of the prefix that come on top of the lengths."""
        return self.prefix.tokens if self.prefix and self.prefix_in_front else 0

    def parts(self) -> Iterator[Part]:
        """Requests by how many of their tokens are shared; those parts are disjoint."""
        rule, extra = self.prefix, self.in_front
        if rule is None:
            yield Part(self.pairs, 0, self.retention)
            return
        having = [pair for pair in self.pairs if pair[0] + extra >= rule.tokens]
        lacking = [pair for pair in self.pairs if pair[0] + extra < rule.tokens]
        lacking += [(p, o, share * (1 - rule.share)) for p, o, share in having if rule.share < 1]
        if having:
            longer = tuple((p + extra, o, share * rule.share) for p, o, share in having)
            yield Part(longer, rule.tokens, _over(self.retention, having, longer))
        if lacking:
            yield Part(tuple(lacking), 0, self.retention)

    def within(self, limit: int) -> tuple[Traffic, float]:
        """The requests that an engine takes, cut at its longest, and the share it refuses."""
        room = limit - self.in_front
        short = tuple(pair for pair in self.pairs if pair[0] < room)
        kept = tuple((prompt, min(output, room - prompt), share) for prompt, output, share in short)
        whole = math.fsum([share for _, _, share in self.pairs])
        left = math.fsum([share for _, _, share in kept])
        taken = replace(self, pairs=kept, retention=_over(self.retention, short, kept))
        return taken, max(0.0, 1 - left / whole) if whole else 0.0


def _over(
    retention: Retention | None, before: Iterable[Pair], after: Iterable[Pair]
) -> Retention | None:
    return None if retention is None else retention.over(before, after)


@dataclass(frozen=True, slots=True)
class Service:
    """How fast one request is served while others are, too.

    Attributes:
        decode_tokens_per_s: Tokens that a request generates a second, or None: not stated.
        prefill_tokens_per_s: Tokens of its prompt that are computed a second, or None: at once.
        arriving_tokens_per_s: Tokens of its prompt whose cache comes over a link a second, where
            another pool computed it; None: it is computed where it is held.
    """

    decode_tokens_per_s: float | None = None
    prefill_tokens_per_s: float | None = None
    arriving_tokens_per_s: float | None = None

    def __post_init__(self) -> None:
        for rate in (self.decode_tokens_per_s, self.prefill_tokens_per_s):
            if rate is not None and not 0 < rate < math.inf:
                raise UsageError("A service rate is above 0.", hint="Write --decode-rate 30.")
        if self.prefill_tokens_per_s is not None and self.decode_tokens_per_s is None:
            raise UsageError(
                "The rate of prompts says nothing without that of outputs.",
                hint="Add --decode-rate, in tokens a second of one request.",
            )

    @property
    def prompt_steps(self) -> float:
        """Decoding steps that one token of a prompt takes."""
        return self._steps(self.prefill_tokens_per_s)

    def life(self, retention: Retention | None) -> Life:
        """What of a request's life is not generating, in decoding steps.

        Raises:
            UsageError: sessions are kept, and how fast requests generate is not stated.
        """
        arriving, prompt = self._steps(self.arriving_tokens_per_s), self.prompt_steps
        if retention is None:
            return Life(prompt, arriving)
        rate = self.decode_tokens_per_s
        if rate is None:
            raise UsageError(
                "How long sessions run before they are kept is not stated.",
                hint="Add --decode-rate, in tokens a second of one request.",
            )
        return Life(prompt, arriving, lambda given, made: rate * retention.kept_s(given, made))

    def _steps(self, tokens_per_s: float | None) -> float:
        if tokens_per_s is None or self.decode_tokens_per_s is None:
            return 0.0
        return self.decode_tokens_per_s / tokens_per_s


@dataclass(frozen=True, slots=True)
class Demand:
    """How many requests come.

    Attributes:
        rate_per_s: Arrivals a second over the day, or None.
        users: Users who each send their next request a while after the answer, or None.
        think_s: That while, on average.
        profile: The day.
    """

    rate_per_s: float | None = None
    users: int | None = None
    think_s: float = 0.0
    profile: DailyProfile = EVERY_HOUR_ALIKE

    def __post_init__(self) -> None:
        if (self.rate_per_s is None) == (self.users is None):
            raise UsageError("Give either a rate of arrivals or a number of users.")
        if self.rate_per_s is not None and not 0 < self.rate_per_s < math.inf:
            raise UsageError("The rate of arrivals is above 0.", hint="Write --rate 5/s.")
        if self.users is not None and self.users < 1:
            raise UsageError("There is at least one user.", hint="Write --users 500.")
        if not 0 <= self.think_s < math.inf:
            raise UsageError("The time to think is 0 or more.", hint="Write --think 30s.")


def check_risk(risk: float) -> float:
    """The same, if it is one.

    Raises:
        UsageError: it is below 10^-9 or above one half.
    """
    if not LEAST_RISK <= risk <= MOST_RISK:
        raise UsageError(
            f"A risk of {risk:g} can't be planned for.",
            hint="Write --risk 0.1%: above 0 and at most 50 %.",
        )
    return risk
