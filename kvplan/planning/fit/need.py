"""What has to be held: requests of one length, or real traffic at a chosen risk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from kvplan.engines.base import Prepared
from kvplan.fit_result import Why
from kvplan.planning.traffic.answer import Question
from kvplan.planning.traffic.day import MOST_REPLICAS, load_of
from kvplan.planning.traffic.replica import measure


@dataclass(frozen=True, slots=True)
class Held:
    """What a prepared configuration holds.

    Attributes:
        requests: Over all replicas that it was judged for.
        needed: Requests that are asked for.
        enough: Whether that is enough.
        why: Where no number of replicas cures it, the reason; else None.
        message: It as a sentence.
        longest: Tokens of the longest request that it takes.
    """

    requests: int
    needed: int
    enough: bool
    why: Why | None = None
    message: str = ""
    longest: int = 0


class Need(Protocol):
    """What is asked of a deployment."""

    @property
    def context(self) -> int:
        """Tokens of the longest request."""
        ...

    @property
    def seen(self) -> int:
        """Tokens of a request in flight, for how fast steps may be."""
        ...

    @property
    def prompt(self) -> int:
        """Tokens of a prompt, for the same."""
        ...

    def held(self, prepared: Prepared, own: int, replicas: int) -> Held:
        """Judges.

        Args:
            prepared: The configuration.
            own: Replicas that it was prepared with.
            replicas: Replicas to judge it for: a multiple of ``own``.
        """
        ...


@dataclass(frozen=True, slots=True)
class FixedLoad:
    """Requests of one length at once."""

    context: int
    concurrency: int
    prompt: int

    @property
    def seen(self) -> int:
        """Tokens of a request in flight."""
        return self.context

    def held(self, prepared: Prepared, own: int, replicas: int) -> Held:
        """See `Need.held`."""
        figures = prepared.figures(self.context)
        requests = figures.requests // own * replicas if figures.starts else 0
        why, message = _never_starts(figures.starts, figures.max_context, self.context)
        return Held(
            requests=requests,
            needed=self.concurrency,
            enough=why is None and requests >= self.concurrency,
            why=why,
            message=message,
            longest=figures.max_context,
        )


class TrafficLoad:
    """Traffic at a risk: so many at once, or as many as arrivals make.

    Args:
        question: The traffic.
        context: The longest request that the engine takes.
        concurrency: Requests at once where the question states no demand.
    """

    def __init__(self, question: Question, context: int, concurrency: int | None) -> None:
        self._question = question
        self._concurrency = concurrency or 1
        traffic, left_out = question.traffic.within(context)
        self.left_out: float = left_out
        self._traffic = traffic
        self._context = context
        whole = sum(share for _, _, share in traffic.pairs) or 1.0
        prompts = sum(prompt * share for prompt, _, share in traffic.pairs) / whole
        outputs = sum(output * share for _, output, share in traffic.pairs) / whole
        self._prompt = max(1, int(prompts))
        self._seen = max(1, int(prompts + outputs / 2))
        self._known: tuple[Prepared, tuple[int, int, int | None]] | None = None

    @property
    def context(self) -> int:
        """See `Need.context`."""
        return self._context

    @property
    def seen(self) -> int:
        """A mean prompt and half of a mean output."""
        return self._seen

    @property
    def prompt(self) -> int:
        """A mean prompt."""
        return self._prompt

    @property
    def is_empty(self) -> bool:
        """Whether the engine would refuse every request as too long."""
        return not self._traffic.pairs

    def held(self, prepared: Prepared, own: int, replicas: int) -> Held:  # noqa: ARG002 - of one replica
        """See `Need.held`."""
        figures = prepared.figures(self.context)
        why, message = _never_starts(figures.starts, figures.max_context, self.context)
        if why is not None:
            return Held(0, self._concurrency, enough=False, why=why, message=message)
        each, needed, fewest = self._judged(prepared)
        requests = each * replicas
        enough = requests >= needed if fewest is None else replicas >= fewest
        return Held(requests, needed, enough=enough, longest=figures.max_context)

    def _judged(self, prepared: Prepared) -> tuple[int, int, int | None]:
        """Requests of a replica, those needed, and the fewest replicas where demand says them."""
        if self._known is None or self._known[0] is not prepared:
            self._known = (prepared, self._judge(prepared))
        return self._known[1]

    def _judge(self, prepared: Prepared) -> tuple[int, int, int | None]:
        asked = self._question
        measured = measure(prepared, self.context, self._traffic, asked.service)
        each = int(measured.replica().constant(asked.risk).requests)
        if asked.demand is None:
            return each, self._concurrency, None
        load = load_of(
            measured.replica(),
            asked.demand,
            asked.service,
            steps=measured.steps,
            replicas=1,
            risk=asked.risk,
        )
        return each, max(1, round(load.peak_concurrent)), load.replicas_needed or MOST_REPLICAS


def _never_starts(starts: bool, longest: int, context: int) -> tuple[Why | None, str]:  # noqa: FBT001 - one of three facts
    if starts:
        return None, ""
    if longest < 1:
        return "weights", "Weights and the engine's own memory leave no room for a cache."
    if longest < context:
        return "request", f"One request does not fit: the longest is {longest:,} tokens."
    return "request", "The engine does not start: what its budget leaves alone does not fit."
