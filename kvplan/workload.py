"""`kvplan.Workload`: the requests that `kvplan.simulate` and `kvplan.traffic` are asked about."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from kvplan.errors import UsageError
from kvplan.sources.traces import open_trace
from kvplan.units import MAX_TOKENS
from kvplan.workloads.arrivals import Arrivals
from kvplan.workloads.generate import generate
from kvplan.workloads.lengths import Pair, gathered
from kvplan.workloads.requests import Request
from kvplan.workloads.wording import Worded, parse_lengths

USUAL_REQUESTS = 5000


@dataclass(frozen=True, slots=True)
class Workload:
    """Requests that come: drawn from lengths and a rate, or those of a trace.

    It can be iterated over more than once, each time from the start and each time the same.

    Attributes:
        lengths: Prompt and output as `kvplan traffic --lengths` takes them:
            ``"p50=1k,p95=8k/300"``; None where there is a trace.
        rate_per_s: Requests a second; needed with ``lengths`` where requests are simulated. A
            trace is simulated at its own times.
        trace: A file of requests, in place of lengths.
        requests: How many at most; None: 5,000 where they are drawn, all of a trace.
        seed: The same seed draws the same requests.

    Raises:
        UsageError: neither lengths nor a trace, or both.

    Example:
        >>> chat = Workload("200/100", rate_per_s=2.0, requests=3)
        >>> [(request.prompt_tokens, request.output_tokens) for request in chat]
        [(200, 100), (200, 100), (200, 100)]
    """

    lengths: str | None = None
    rate_per_s: float | None = None
    trace: str | Path | None = None
    requests: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if (self.lengths is None) == (self.trace is None):
            raise UsageError(
                "Say what traffic there is: lengths or a trace, one of the two.",
                hint='Write Workload("p50=1k,p95=8k/300", rate_per_s=5).',
            )

    def __iter__(self) -> Iterator[Request]:
        return self._drawn() if self.trace is None else self._traced()

    def _traced(self) -> Iterator[Request]:
        with open_trace(str(self.trace)) as trace:
            yield from islice(trace.requests, self.requests)

    def _drawn(self) -> Iterator[Request]:
        worded = self.worded()
        if worded is None or self.rate_per_s is None or not worded.lengths.grows:
            raise UsageError(
                "How often requests come, or how much they generate, is missing.",
                hint='Write Workload("8k/300", rate_per_s=5).',
            )
        most = USUAL_REQUESTS if self.requests is None else self.requests
        return generate(worded.lengths, Arrivals(self.rate_per_s), seed=self.seed, requests=most)

    def worded(self) -> Worded | None:
        """The lengths, read; None of a trace."""
        return None if self.lengths is None else parse_lengths(self.lengths, limit=MAX_TOKENS)

    def pairs(self) -> tuple[Pair, ...]:
        """Prompts and outputs of a trace, with how many requests have both."""
        return gathered((one.prompt_tokens, one.output_tokens, 1.0) for one in self)
