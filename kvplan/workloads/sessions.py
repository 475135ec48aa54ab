"""Conversations of several turns: the context grows, and the user thinks in between."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count
from random import Random
from typing import TypeAlias

from kvplan.errors import UsageError
from kvplan.units import MAX_TOKENS
from kvplan.workloads.distributions import Distribution, draw
from kvplan.workloads.lengths import Pair, gathered
from kvplan.workloads.requests import PrefixUse, Request
from kvplan.workloads.sharing import PrefixRule

Waiting: TypeAlias = list[tuple[float, int, int, Request]]
"""A heap of the next turn of each conversation: when, which conversation, which turn."""

_MOST_TURNS = 10_000


@dataclass(frozen=True, slots=True)
class Sessions:
    """What a conversation looks like.

    Attributes:
        turns: Turns of a conversation.
        message: Tokens that the user adds each turn.
        output: Tokens that the model answers each turn.
        think_s: Mean seconds from an answer to the next message, exponentially distributed.
        first_tokens: Tokens in front of the first message, such as a system prompt.
        prefix: The shared part of those, or None.
        limit: Tokens at which a conversation ends.
        seconds_per_token: How long an answer takes, where that is stated; 0: turns come a pause
            after the answer, whenever the engine has given it.
    """

    turns: Distribution
    message: Distribution
    output: Distribution
    think_s: float = 0.0
    first_tokens: int = 0
    prefix: PrefixUse | None = None
    limit: int = MAX_TOKENS
    seconds_per_token: float = 0.0

    def __post_init__(self) -> None:
        if min(self.think_s, self.first_tokens, self.seconds_per_token) < 0:
            raise UsageError("Times and lengths of a session are 0 or more.")
        if self.prefix is not None and self.prefix.tokens > self.first_tokens:
            raise UsageError(
                "The shared prefix is longer than what stands in front of the first message.",
                hint="Give first_tokens at least the prefix's tokens.",
            )

    def behind(self, prefix: PrefixUse | None) -> Sessions:
        """The same with a shared prefix in front of everything else."""
        if prefix is None:
            return self
        return replace(self, prefix=prefix, first_tokens=self.first_tokens + prefix.tokens)

    def session(self, name: str, start_s: float, random: Random) -> Iterator[Request]:
        """The turns of one conversation, in order."""
        clock, context = start_s, self.first_tokens
        pause = None if self.seconds_per_token else 0.0
        for turn in range(draw(self.turns, random, limit=_MOST_TURNS)):
            prompt = context + draw(self.message, random, limit=self.limit)
            output = draw(self.output, random, limit=self.limit)
            if prompt + output > self.limit:
                return
            yield Request(clock, prompt, output, self.prefix, name, turn, pause_s=pause)
            context = prompt + output
            think_s = random.expovariate(1 / self.think_s) if self.think_s else 0.0
            clock += output * self.seconds_per_token + think_s
            pause = None if pause is None else think_s

    def pairs(self, *, seed: int = 0, sessions: int = 1000) -> tuple[Pair, ...]:
        """Prompts and outputs of all turns, from so many conversations drawn with ``seed``."""
        return self.turns_of(seed=seed, sessions=sessions)[0]

    def turns_of(
        self, *, seed: int = 0, sessions: int = 1000
    ) -> tuple[tuple[Pair, ...], Mapping[tuple[int, int], float]]:
        """The same, and for each prompt and output the share that no turn follows.

        Raises:
            UsageError: no conversation has a turn.
        """
        random = Random(seed)  # noqa: S311  no secret depends on it
        talks = [list(self.session(str(index), 0.0, random)) for index in range(sessions)]
        drawn = [request for talk in talks for request in talk]
        if not drawn:
            raise UsageError(
                "No conversation has a turn within the longest context.",
                hint="Shorten its messages, or raise the limit.",
            )
        share = 1 / len(drawn)
        pairs = gathered((one.prompt_tokens, one.output_tokens, share) for one in drawn)
        shares = {(prompt, output): part for prompt, output, part in pairs}
        ends = (talk[-1] for talk in talks if talk)
        last = gathered((one.prompt_tokens, one.output_tokens, share) for one in ends)
        return pairs, {(p, o): min(1.0, part / shares[p, o]) for p, o, part in last}


def in_order(
    starts: Iterator[float], sessions: Sessions, *, seed: int, prefixes: PrefixRule | None = None
) -> Iterator[Request]:
    """Requests of conversations that begin at ``starts`` (ascending), in order of arrival.

    Each conversation has random numbers of its own, so that the same seed gives the same
    conversations however many there are. It keeps the prefix that it began with.
    """
    waiting: Waiting = []
    open_turns: dict[int, Iterator[Request]] = {}
    for index, start in zip(count(), starts, strict=False):
        yield from _until(start, waiting, open_turns)
        random = Random(f"{seed}/{index}")  # noqa: S311  no secret depends on it
        own = Random(f"{seed}/{index}/prefix")  # noqa: S311  no secret depends on it
        talk = sessions if prefixes is None else sessions.behind(prefixes.draw(start, own))
        open_turns[index] = talk.session(f"s{index}", start, random)
        _push(index, waiting, open_turns)
    yield from _until(float("inf"), waiting, open_turns)


def _until(
    time_s: float, waiting: Waiting, open_turns: dict[int, Iterator[Request]]
) -> Iterator[Request]:
    while waiting and waiting[0][0] <= time_s:
        _, index, _, request = heapq.heappop(waiting)
        yield request
        _push(index, waiting, open_turns)


def _push(index: int, waiting: Waiting, open_turns: dict[int, Iterator[Request]]) -> None:
    request = next(open_turns[index], None)
    if request is None:
        del open_turns[index]
        return
    heapq.heappush(waiting, (request.arrival_s, index, request.turn, request))
