"""Requests as a workload states them: when they come, how long they are, what they share.

A workload is any iterable of requests in order of arrival; it may be endless or larger than
memory. Nothing here knows an engine, a file or a clock.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from kvplan.errors import UsageError


@dataclass(frozen=True, slots=True)
class PrefixUse:
    """The shared beginning of one request's prompt.

    Attributes:
        id: Two requests with equal ids begin with the same tokens; scope (tenant or global) and
            version are part of it (`kvplan.workloads.sharing`).
        tokens: How many tokens of the prompt it is.
    """

    id: str
    tokens: int


@dataclass(frozen=True, slots=True)
class ContentBlocks:
    """What a prompt consists of, as a trace states it: an id for each block of tokens.

    Equal ids at equal positions mean equal content of the prompt up to there.

    Attributes:
        ids: One for each block, the last one perhaps only in part full.
        block_tokens: Tokens of a full block, such as 512 in Mooncake's traces.
    """

    ids: tuple[int, ...]
    block_tokens: int


@dataclass(frozen=True, slots=True)
class Request:
    """One request.

    Attributes:
        arrival_s: Seconds since the start of the workload.
        prompt_tokens: Its whole prompt: shared prefix and the session's earlier turns included.
        output_tokens: Tokens it generates.
        prefix: The shared beginning of its prompt, or None.
        session: Which conversation it belongs to, or None.
        turn: Which turn of that conversation, from 0. The prompt of turn n + 1 begins with the
            prompt and the output of turn n.
        blocks: What the prompt consists of, or None where the workload does not say.
        pause_s: Seconds from the answer of the turn before to this turn, where that is not known
            when the workload is drawn: it then comes after that answer and such a pause, and never
            before ``arrival_s``. None: it comes at ``arrival_s``, whatever the engine does.
    """

    arrival_s: float
    prompt_tokens: int
    output_tokens: int
    prefix: PrefixUse | None = None
    session: str | None = None
    turn: int = 0
    blocks: ContentBlocks | None = None
    pause_s: float | None = None

    @property
    def total_tokens(self) -> int:
        """Tokens at its end."""
        return self.prompt_tokens + self.output_tokens


Workload: TypeAlias = Iterable[Request]
"""Requests in order of arrival."""


def check_request(request: Request) -> Request:
    """The same request, if it makes sense.

    Raises:
        UsageError: a negative or missing length or time, or a prefix longer than its prompt.
    """
    if request.prompt_tokens < 1 or request.output_tokens < 1:
        raise UsageError(
            f"A request of {request.prompt_tokens:,} prompt and {request.output_tokens:,} output"
            " tokens makes no sense.",
            hint="Both have at least 1 token.",
        )
    if not 0 <= request.arrival_s < float("inf"):
        raise UsageError(f"A request cannot arrive at {request.arrival_s} s.")
    if request.prefix is not None and not 0 <= request.prefix.tokens <= request.prompt_tokens:
        raise UsageError(
            f"A prefix of {request.prefix.tokens:,} tokens is not within a prompt of"
            f" {request.prompt_tokens:,}."
        )
    return request
