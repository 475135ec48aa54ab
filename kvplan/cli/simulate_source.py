"""The flags of `kvplan simulate` → requests, tiers and times."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice, takewhile

from kvplan.cli import traffic_words
from kvplan.cli.arguments import parse_optional_count
from kvplan.cli.simulate_words import parse_span
from kvplan.cli.traffic_source import TrafficFlags
from kvplan.errors import UsageError
from kvplan.sources.length_tables import check_not_table
from kvplan.sources.trace_columns import parse_columns
from kvplan.sources.traces import about_requests, open_trace
from kvplan.units import MAX_TOKENS
from kvplan.workloads.arrivals import Arrivals
from kvplan.workloads.distributions import Fixed
from kvplan.workloads.generate import generate, generate_sessions
from kvplan.workloads.requests import Request
from kvplan.workloads.sessions import Sessions
from kvplan.workloads.wording import parse_lengths

_USUAL = 5000


@dataclass(frozen=True, slots=True)
class Stream:
    """What comes, as the flags say it; it can be asked for its requests more than once.

    Attributes:
        flags: Those shared with `kvplan traffic`.
        requests, duration, start_at: As they were typed.
        speed: How many times as fast a trace comes.
        burst: Standard deviation of the time between arrivals over its mean.
    """

    flags: TrafficFlags
    seed: int
    requests: str | None = None
    duration: str | None = None
    start_at: str = "0h"
    burst: float = 1.0
    speed: float = 1.0

    def check(self) -> None:
        """Raises where the flags make no sense, before anything is read.

        Raises:
            UsageError: they don't.
        """
        given = self.flags
        if (given.trace is None) == (given.lengths is None):
            raise UsageError(
                "Say what traffic there is: a trace or lengths, one of the two.",
                hint="Write --traffic FILE, or --lengths p50=1k,p95=8k/300 --rate 5/s.",
            )
        if given.trace is not None and (given.rate or given.turns or given.prefix or given.daily):
            raise UsageError(
                "A trace has its own arrivals, turns and prefixes.",
                hint="Leave out --rate, --turns, --prefix and --daily; --speed 2 plays it faster.",
            )
        if given.trace is None and given.rate is None:
            raise UsageError("How often requests come is missing.", hint="Write --rate 5/s.")

    def stream(self) -> Iterator[Request]:
        """The requests, from the start.

        Raises:
            UsageError: flags that make no sense.
            InputError: a trace that can't be read, also while it is read.
        """
        found = self._trace() if self.flags.trace is not None else self._drawn()
        if self.duration is not None:
            until = parse_span("--duration", self.duration)
            return takewhile(lambda request: request.arrival_s <= until, found)
        return found

    def about(self) -> int | None:
        """About how many requests that makes, for a progress bar; None: nobody knows.

        Raises:
            KvplanError: as `stream`.
        """
        limit = self._limit()
        if self.flags.trace is None:
            turns = parse_optional_count("--turns", self.flags.turns) or 1
            return None if limit is None else limit * turns
        listed = about_requests(self.flags.trace)
        known = [count for count in (limit, listed) if count is not None]
        return min(known, default=None)

    def _limit(self) -> int | None:
        count = parse_optional_count("--requests", self.requests)
        if count is None and self.flags.trace is None and self.duration is None:
            return _USUAL
        return count

    def _trace(self) -> Iterator[Request]:
        check_not_table(self.flags.trace or "-")
        columns = parse_columns(self.flags.columns) if self.flags.columns else {}
        with open_trace(self.flags.trace or "", columns=columns) as trace:
            for request in islice(trace.requests, self._limit()):
                if self.speed == 1:
                    yield request
                else:
                    yield replace(request, arrival_s=request.arrival_s / self.speed)

    def _drawn(self) -> Iterator[Request]:
        given = self.flags
        lengths = parse_lengths(given.lengths or "", limit=MAX_TOKENS).lengths
        if not lengths.grows:
            raise UsageError(
                "How much requests generate is missing.", hint="Write --lengths 8k/300."
            )
        arrivals = Arrivals(
            rate_per_s=traffic_words.parse_rate(given.rate or ""),
            spread=self.burst,
            profile=traffic_words.parse_daily(given.daily),
            start_s=parse_span("--start-at", self.start_at),
        )
        prefix = traffic_words.parse_prefix(given.prefix)
        if given.turns is None:
            return generate(
                lengths, arrivals, seed=self.seed, requests=self._limit(), prefixes=prefix
            )
        kind = lengths.kinds[0]
        if len(lengths.kinds) > 1:
            raise UsageError(
                "Conversations need one kind of message and of answer.",
                hint="Write --turns 6 --lengths 200/300.",
            )
        sessions = Sessions(
            turns=Fixed(parse_optional_count("--turns", given.turns) or 1),
            message=kind.prompt,
            output=kind.output or Fixed(1),
            think_s=traffic_words.parse_time("--think", given.think),
        )
        count = self._limit() or _USUAL
        return generate_sessions(
            sessions, arrivals, seed=self.seed, conversations=count, prefixes=prefix
        )


def check_twice(stream: Stream) -> None:
    """Raises where the requests can be had only once.

    Raises:
        UsageError: they come on standard input.
    """
    if stream.flags.trace == "-":
        raise UsageError(
            "The curve reads the trace once more, which standard input can't.",
            hint="Write the trace to a file.",
        )
