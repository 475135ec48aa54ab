"""A scenario's workload → the requests that it means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from kvplan.errors import UsageError
from kvplan.scenario.question import Question
from kvplan.sources.trace_columns import parse_columns
from kvplan.sources.traces import open_trace
from kvplan.units import MAX_TOKENS
from kvplan.workloads.distributions import Fixed
from kvplan.workloads.lengths import Kind, Lengths, Pair, gathered
from kvplan.workloads.percentiles import Fit
from kvplan.workloads.sessions import Sessions
from kvplan.workloads.wording import parse_lengths


@dataclass(frozen=True, slots=True)
class Requests:
    """The requests that a workload means.

    Attributes:
        grows: Answers are known; else a request has its whole length from the start.
        in_front: Prefixes come on top of the lengths.
        rate_per_s: A trace's own rate, if it has one.
        last: For prompts and outputs of conversations the share that no turn follows.
    """

    name: str
    pairs: tuple[Pair, ...]
    grows: bool = True
    in_front: bool = False
    read: int | None = None
    failed: int = 0
    rate_per_s: float | None = None
    fits: tuple[Fit, ...] = ()
    last: Mapping[tuple[int, int], float] | None = None


def requests_of(question: Question) -> Requests:
    """The requests; a trace is read here.

    Raises:
        UsageError: turns of more than one kind of message.
        InputError: the trace can't be read.
    """
    workload = question.workload
    if question.trace is not None:
        return _of_trace(question)
    if workload.lengths is None:
        prompt, output = workload.input_tokens or 1, workload.output_tokens
        kind = Kind(1.0, Fixed(prompt), Fixed(output) if output else None)
        lengths = Lengths((kind,))
        name = f"{prompt}/{output}" if output else str(prompt)
        fits: tuple[Fit, ...] = ()
    else:
        worded = parse_lengths(workload.lengths, limit=MAX_TOKENS)
        lengths, fits, name = worded.lengths, worded.fits, workload.lengths
    turns = workload.sessions.turns if workload.sessions else None
    if turns is not None:
        pairs, last = _of_turns(question, lengths, turns)
        return Requests(name, pairs, in_front=True, fits=fits, last=last)
    in_front = workload.lengths is not None
    return Requests(name, lengths.pairs(), lengths.grows, in_front=in_front, fits=fits)


def _of_turns(
    question: Question, lengths: Lengths, turns: int
) -> tuple[tuple[Pair, ...], Mapping[tuple[int, int], float]]:
    kind = lengths.kinds[0]
    if len(lengths.kinds) > 1 or kind.output is None:
        raise UsageError(
            "Conversations need one kind of message and of answer.",
            hint="Write lengths: 200/300 beside sessions: {turns: 6}.",
            location=str(question.place(("workload", "lengths"))),
        )
    return Sessions(Fixed(turns), kind.prompt, kind.output).turns_of()


def _of_trace(question: Question) -> Requests:
    path, workload = str(question.trace), question.workload
    read = _read_trace(path, workload.trace_columns, _stamp(question.trace))
    return replace(read, name=workload.trace or path)


def _stamp(path: Path | None) -> tuple[int, int]:
    """By which a file that was written anew is told."""
    try:
        found = (path or Path()).stat()
    except (OSError, ValueError):
        return 0, 0  # reading it says what is wrong
    return found.st_mtime_ns, found.st_size


@lru_cache(maxsize=8)
def _read_trace(path: str, written: str | None, _stamp: tuple[int, int]) -> Requests:
    """A trace, read once for all the scenarios that name it."""
    columns = parse_columns(written) if written else {}
    with open_trace(path, columns=columns) as trace:
        pairs = gathered((one.prompt_tokens, one.output_tokens, 1.0) for one in trace.requests)
        tally = trace.tally
    timed = tally.timed and tally.last_s > 0
    return Requests(
        path,
        pairs,
        read=tally.requests,
        failed=tally.failed,
        rate_per_s=tally.requests / tally.last_s if timed else None,
    )
