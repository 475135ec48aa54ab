"""Keeps count while a simulation runs, and sums it up."""

from __future__ import annotations

from array import array
from collections import defaultdict
from dataclasses import dataclass

from kvplan.planning.simulate.memory import Hit
from kvplan.planning.simulate.sequence import Sequence
from kvplan.planning.simulate.spread import spread_of, spread_over
from kvplan.planning.simulate.timeline import Timeline
from kvplan.simulation import (
    Latency,
    Preemptions,
    Requests,
    Spread,
    Throughput,
    Waiting,
)


@dataclass(frozen=True, slots=True)
class Limits:
    """What a request has to keep to count as good.

    Attributes:
        first_token_s: Seconds to the first token.
        between_tokens_s: Mean seconds between tokens.
    """

    first_token_s: float | None = None
    between_tokens_s: float | None = None

    @property
    def given(self) -> bool:
        """Whether there is any."""
        return self.first_token_s is not None or self.between_tokens_s is not None


class Recorder:
    """Counts of one simulation. Times are seconds of the simulated clock."""

    def __init__(self, limits: Limits) -> None:
        self.steps: int = 0
        self.arrived = 0
        self.finished: int = 0
        self.refused = 0
        self.cut: int = 0
        self.prompt_tokens: int = 0
        self.hit_tokens: int = 0
        self.local_tokens: int = 0
        self.loaded_blocks: list[int] = []
        self.timeline: Timeline = Timeline()
        self._limits = limits
        self._good = 0
        self._output_tokens = 0
        self._computed_tokens = 0
        self._recomputed = 0
        self._preempted: defaultdict[int, int] = defaultdict(int)
        self._refusals = (0, 0)
        self._for_blocks = 0
        self._for_sequences = 0
        self._used: defaultdict[float, float] = defaultdict(float)
        self._running: defaultdict[float, float] = defaultdict(float)
        self._waits = array("d")
        self._first = array("d")
        self._between = array("d")
        self._whole = array("d")

    def step(
        self, start: float, seconds: float, *, used: int, kept: int, running: int, waiting: int
    ) -> None:
        """The engine was in that state for so long."""
        self._used[used] += seconds
        self._running[running] += seconds
        self.timeline.add(start, seconds, used=used, kept=kept, running=running, waiting=waiting)

    def computed(self, tokens: int) -> None:
        """Tokens that a step computed."""
        self.steps += 1
        self._computed_tokens += tokens

    def refused_first(self, *, full: bool) -> None:
        """The first in line has to wait: the pool is full, or as many run as may."""
        blocks, sequences = self._refusals
        self._refusals = (blocks + 1, sequences) if full else (blocks, sequences + 1)

    def queued(self, sequence: Sequence) -> None:
        """A request arrived."""
        sequence.refusals = self._refusals

    def admitted(self, sequence: Sequence, hit: Hit, now: float) -> None:
        """A request was given its first blocks, or its blocks again."""
        if sequence.admitted_s is None:
            sequence.admitted_s = now
            self._waits.append(now - sequence.request.arrival_s)
            self.prompt_tokens += sequence.target
            self.hit_tokens += hit.tokens
            self.local_tokens += hit.local
            before = sequence.refusals
            self._for_blocks += self._refusals[0] > before[0]
            self._for_sequences += self._refusals[1] > before[1]
        else:
            # Of what it had computed, whatever is not resident any more is computed again.
            self._recomputed += max(0, sequence.lost - hit.tokens)
        for level, count in enumerate(hit.loaded):
            while len(self.loaded_blocks) <= level:
                self.loaded_blocks.append(0)
            self.loaded_blocks[level] += count

    def preempted(self, sequence: Sequence) -> None:
        """A running request lost its blocks."""
        self._preempted[sequence.number] += 1

    def done(self, sequence: Sequence, now: float) -> None:
        """A request generated its last token."""
        arrival = sequence.request.arrival_s
        first = (sequence.first_token_s if sequence.first_token_s is not None else now) - arrival
        self.finished += 1
        self.cut += sequence.length < sequence.request.total_tokens
        self._output_tokens += sequence.output
        self._first.append(first)
        self._whole.append(now - arrival)
        between = 0.0
        if sequence.output > 1:
            between = (now - arrival - first) / (sequence.output - 1)
            self._between.append(between)
        limits = self._limits
        self._good += (limits.first_token_s is None or first <= limits.first_token_s) and (
            limits.between_tokens_s is None or between <= limits.between_tokens_s
        )

    def requests(self) -> Requests:
        """What became of the requests."""
        return Requests(
            arrived=self.arrived,
            finished=self.finished,
            refused=self.refused,
            cut=self.cut,
            unfinished=self.arrived - self.finished - self.refused,
        )

    def waiting(self) -> Waiting:
        """How long requests waited."""
        return Waiting(
            seconds=spread_of(self._waits),
            for_blocks=self._for_blocks,
            for_sequences=self._for_sequences,
        )

    def preemptions(self) -> Preemptions:
        """Requests that lost their blocks."""
        return Preemptions(
            count=sum(self._preempted.values()),
            requests=len(self._preempted),
            recomputed_tokens=self._recomputed,
        )

    def latency(self) -> Latency:
        """What users see."""
        return Latency(
            first_token=spread_of(self._first),
            between_tokens=spread_of(self._between),
            whole=spread_of(self._whole),
        )

    def throughput(self, seconds: float) -> Throughput:
        """What was done a second."""
        over = seconds or 1.0
        given = self._limits.given
        return Throughput(
            requests_per_s=self.finished / over,
            output_tokens_per_s=self._output_tokens / over,
            computed_tokens_per_s=self._computed_tokens / over,
            goodput_per_s=self._good / over if given else None,
            good_share=self._good / self.finished if given and self.finished else None,
            first_token_limit_s=self._limits.first_token_s,
            between_tokens_limit_s=self._limits.between_tokens_s,
        )

    def used(self) -> Spread | None:
        """Blocks held, over time."""
        return spread_over(self._used)

    def running(self) -> Spread | None:
        """Requests that ran, over time."""
        return spread_over(self._running)
