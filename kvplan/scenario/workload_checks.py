"""What a workload may not say at once, and what needs something beside it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kvplan.scenario.matrix import Variant
from kvplan.scenario.problems import Found, refuse
from kvplan.scenario.workload import Workload


class _Wrong(NamedTuple):
    key: str
    sentence: str


def check_workload(variant: Variant, workload: Workload, concurrency: int | None) -> None:
    """Refuses what contradicts itself, all of it at once.

    Raises:
        InputError: something does.
    """
    wrong = (*_lengths(workload), *_demand(workload, concurrency), *_lacking(workload))
    place = variant.document.location
    found = [Found(place(("workload", each.key)), each.sentence) for each in wrong]
    refuse(found, file=place())


def _lengths(workload: Workload) -> Iterator[_Wrong]:
    """Lengths are stated in one way."""
    stated = [
        name for name in ("input_tokens", "lengths", "trace") if getattr(workload, name) is not None
    ]
    if len(stated) > 1:
        first, second, *_ = stated
        yield _Wrong(second, f"`{first}` and `{second}` both say how long requests are.")
    turns = workload.sessions.turns if workload.sessions else None
    if turns and workload.trace:
        yield _Wrong("sessions", "A trace has its own turns: leave out `turns`.")
    elif turns and not stated:
        yield _Wrong(
            "sessions", "`turns` needs the `lengths` of one message and one answer: 200/300."
        )


def _demand(workload: Workload, concurrency: int | None) -> Iterator[_Wrong]:
    """How many requests there are is stated in one way."""
    stated = [name for name in ("rate", "users") if getattr(workload, name) is not None]
    if len(stated) > 1:
        yield _Wrong("users", "`rate` and `users` both say how many requests come.")
    elif stated and concurrency is not None:
        yield _Wrong(
            stated[0],
            f"`concurrency` and `{stated[0]}` both say how many requests there are: write"
            " `concurrency: null`, or leave the other out.",
        )


def _kept(workload: Workload) -> Iterator[_Wrong]:
    """What it takes to know how long the blocks of a session are kept."""
    sessions = workload.sessions
    if sessions is None or sessions.ttl is None:
        return
    if not sessions.turns and workload.users is None:
        return  # said as a note: it is not planned
    if workload.think is None:
        yield _Wrong("sessions", "`sessions.ttl` needs `think`: how long a user thinks.")
    if workload.decode_rate is None and workload.seconds_per_request is None:
        yield _Wrong(
            "sessions", "`sessions.ttl` needs `decode_rate`: tokens a second of one request."
        )


def _lacking(workload: Workload) -> Iterator[_Wrong]:
    lengths = workload.says_lengths or workload.input_tokens is not None
    if workload.says_demand:
        key = "rate" if workload.rate is not None else "users"
        if not lengths:
            yield _Wrong(key, f"`{key}` needs lengths: `lengths`, `trace` or `input_tokens`.")
        if workload.decode_rate is None and workload.seconds_per_request is None:
            yield _Wrong(
                key,
                f"`{key}` needs how long a request lasts: `decode_rate` (tokens a second of one"
                " request) or `seconds_per_request`.",
            )
    elif workload.daily is not None and workload.trace is None:
        yield _Wrong("daily", "`daily` says nothing without a `rate` or `users`.")
    turns = workload.sessions.turns if workload.sessions else None
    if workload.think is not None and workload.users is None and not turns:
        yield _Wrong("think", "`think` says nothing without `users` or `sessions.turns`.")
    yield from _kept(workload)
    if workload.trace_columns is not None and workload.trace is None:
        yield _Wrong("trace_columns", "`trace_columns` says nothing without a `trace`.")
    if workload.prefill_rate is not None and workload.decode_rate is None:
        yield _Wrong("prefill_rate", "`prefill_rate` says nothing without `decode_rate`.")
