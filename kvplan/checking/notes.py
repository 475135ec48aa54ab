"""What a scenario says and its plan does not take into account, as sentences."""

from __future__ import annotations

from collections.abc import Iterator

from kvplan.checking.traffic import wants_traffic
from kvplan.scenario.expectation import parse
from kvplan.scenario.question import Question

_USE_COUNT = frozenset(("requests_with_sessions", "sessions_kept"))


def notes_of(question: Question) -> Iterator[str]:
    """The notes of a scenario: of its command, its sessions and its prefixes."""
    for remark in question.remarks:
        yield f"Not planned: {remark}"
    yield from _of_sessions(question)
    yield from _of_prefixes(question)


def _of_sessions(question: Question) -> Iterator[str]:
    sessions = question.workload.sessions
    if sessions is None:
        return
    kept = sessions.count is not None or sessions.tokens is not None
    if kept and not _USE_COUNT & _expected(question):
        yield (
            "Idle sessions (sessions.count, sessions.tokens) are only counted where an expectation"
            " asks for requests_with_sessions or sessions_kept."
        )
    if sessions.ttl is not None and not sessions.turns and question.workload.users is None:
        yield (
            "sessions.ttl is not planned: it takes sessions.turns with lengths, or users, and how"
            " long they think."
        )


def _of_prefixes(question: Question) -> Iterator[str]:
    prefixes = question.workload.prefixes
    if not prefixes:
        return
    if not wants_traffic(question):
        if "requests_with_prefixes" not in _expected(question):
            yield (
                "Shared prefixes are only counted where an expectation asks for"
                " requests_with_prefixes; `requests` holds each request whole."
            )
        return
    if len(prefixes) > 1:
        yield (
            "In traffic the prefixes count as one behind another that is as rarely shared as the"
            " rarest of them, so that rather too little is held."
        )


def _expected(question: Question) -> set[str]:
    found: set[str] = set()
    for text in question.scenario.expect or ():
        expected = parse(text)
        found |= {expected.name, expected.other or ""}
    return found
