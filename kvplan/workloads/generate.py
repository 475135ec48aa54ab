"""Seeded streams of requests: the same seed gives the same requests."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from random import Random

from kvplan.workloads.arrivals import Arrivals
from kvplan.workloads.lengths import Lengths
from kvplan.workloads.requests import Request
from kvplan.workloads.sessions import Sessions, in_order
from kvplan.workloads.sharing import PrefixRule


def generate(
    lengths: Lengths,
    arrivals: Arrivals,
    *,
    seed: int,
    requests: int | None = None,
    prefixes: PrefixRule | None = None,
) -> Iterator[Request]:
    """Requests of these lengths at these times; None for ``requests``: without end.

    Times, lengths and prefixes have random numbers of their own: another rate leaves the lengths
    as they are. A prefix comes in front of the drawn prompt.
    """
    by_length, by_prefix = _random(seed, "lengths"), _random(seed, "prefixes")
    for time_s in islice(arrivals.times(_random(seed, "arrivals")), requests):
        prompt, output = lengths.draw(by_length)
        prefix = prefixes.draw(time_s, by_prefix) if prefixes else None
        yield Request(time_s, prompt + (prefix.tokens if prefix else 0), output, prefix)


def generate_sessions(
    sessions: Sessions,
    arrivals: Arrivals,
    *,
    seed: int,
    conversations: int,
    prefixes: PrefixRule | None = None,
) -> Iterator[Request]:
    """Requests of so many conversations that begin at these times, in order of arrival.

    A prefix is drawn for each conversation and comes in front of its first message.
    """
    starts = islice(arrivals.times(_random(seed, "arrivals")), conversations)
    return in_order(starts, sessions, seed=seed, prefixes=prefixes)


def _random(seed: int, what: str) -> Random:
    return Random(f"{seed}/{what}")  # noqa: S311  no secret depends on it
