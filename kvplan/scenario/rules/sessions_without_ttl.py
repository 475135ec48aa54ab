"""KV110: sessions whose cache nobody ever lets go."""

from __future__ import annotations

from collections.abc import Iterator

from kvplan.scenario.rules.base import Hit, Rule, Shown


def _check(shown: Shown) -> Iterator[Hit]:
    sessions = shown.question.workload.sessions
    if sessions is not None and sessions.ttl is None:
        yield Hit(
            "Sessions have no TTL: their caches pile up until requests are preempted.",
            "Write sessions: {ttl: 15min}.",
            ("workload", "sessions"),
        )


RULE = Rule("KV110", "sessions-without-ttl", "warning", "Sessions have no TTL.", _check)
