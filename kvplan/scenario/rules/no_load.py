"""KV105: weights fit, and nobody asked for how many requests."""

from __future__ import annotations

from collections.abc import Iterator

from kvplan.scenario.expectation import parse
from kvplan.scenario.rules.base import Hit, Rule, Shown

_SPEAK_OF_LOAD = frozenset(
    (
        *("requests", "capacity.requests", "max_concurrency", "capacity.max_concurrency"),
        *("held_requests", "traffic.held.requests"),
    )
)


def _check(shown: Shown) -> Iterator[Hit]:
    question = shown.question
    expected = question.scenario.expect or ()
    if question.workload.says_demand or (shown.traffic and shown.traffic.plan.load):
        return
    if question.trace is not None and shown.traffic is None:
        return  # a trace has a rate of its own, and this one was not read
    if question.concurrency is not None or _SPEAK_OF_LOAD & {parse(x).name for x in expected}:
        return
    yield Hit(
        "No load is stated, so that the weights and one request are all that has to fit.",
        "Write concurrency: N, or expect: [requests >= N].",
    )


RULE = Rule("KV105", "no-load", "warning", "Sized from the weights alone: no load.", _check)
