"""Expectations against a plan. What can't be computed is never taken for granted: it fails."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kvplan.check_result import Assertion, Place, Status, TrafficResult
from kvplan.scenario import kinds
from kvplan.scenario.expectation import Expectation, Operator, parse
from kvplan.scenario.facts import Facts, Missing
from kvplan.scenario.kinds import Value
from kvplan.scenario.values import value_of

_COMPARE: Mapping[Operator, Callable[[Any, Any], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
    "==": operator.eq,
    "!=": operator.ne,
}
_WANTED: Mapping[Operator, str] = {
    ">=": "at least",
    "<=": "at most",
    ">": "more than",
    "<": "less than",
    "==": "",
    "!=": "anything but",
}
IMPLIED = "verdict == fits"
_SPEAK_OF_TRAFFIC = frozenset(
    (
        *("overload_risk", "replicas", "held_requests", "traffic.held.requests"),
        *("traffic.verdict", "traffic.load.peak_risk", "traffic.load.risk"),
        "traffic.load.replicas_needed",
    )
)


def judge(
    facts: Facts, expected: Sequence[tuple[str, Place]], place: Place
) -> tuple[Assertion, ...]:
    """Every expectation, and that plan and traffic fit where nothing is said of that.

    Args:
        facts: The plan and what goes with it.
        expected: The lines of ``expect:``, checked before, each with its place.
        place: Of the scenario.
    """
    lines = [(parse(text), where) for text, where in expected]
    names = {each.name for each, _ in lines}
    if facts.traffic is not None and not names & _SPEAK_OF_TRAFFIC:
        lines.insert(0, (parse(_of_traffic(facts.traffic)), place))
    if "verdict" not in names:
        lines.insert(0, (parse(IMPLIED), place))
    return tuple(_assertion(facts, each, where) for each, where in lines)


def _of_traffic(traffic: TrafficResult) -> str:
    """What holds of real traffic where nothing is said of it."""
    if traffic.overload_risk is None:
        return "held_requests >= 1"
    return f"overload_risk <= {f'{100 * traffic.plan.risk:.10f}'.rstrip('0').rstrip('.')}%"


def _assertion(facts: Facts, expected: Expectation, place: Place) -> Assertion:
    found = value_of(facts, expected.name)
    limit, limit_text = _limit(facts, expected)
    if isinstance(found, Missing):
        return _unknown(expected, found, None, limit_text, place)
    shown = kinds.show(found, expected.kind, facts.currency)
    if isinstance(limit, Missing):
        return _unknown(expected, limit, shown, limit_text, place)
    status, why = _compare(expected, found, limit)
    return Assertion(
        text=expected.text,
        status=status,
        value=shown,
        limit=limit_text,
        message=why or _sentence(expected, status, shown, limit_text),
        place=place,
    )


def _unknown(
    expected: Expectation, missing: Missing, value: str | None, limit: str, place: Place
) -> Assertion:
    return Assertion(
        text=expected.text,
        status="unknown",
        value=value,
        limit=limit,
        message=f"{expected.text}: this can't be computed: {missing.why}.",
        place=place,
    )


def _limit(facts: Facts, expected: Expectation) -> tuple[Value | Missing, str]:
    if expected.limit is None:
        found = value_of(facts, expected.other or "")
        text = expected.other or ""
        if isinstance(found, Missing):
            return found, text
        return found, f"{text} ({kinds.show(found, expected.kind, facts.currency)})"
    named = expected.limit.currency
    if named is not None and facts.currency is not None and named != facts.currency:
        return Missing(f"prices are in {facts.currency}, not in {named}"), expected.right()
    return expected.limit.value, kinds.show(
        expected.limit.value, expected.kind, named or facts.currency
    )


def _compare(expected: Expectation, found: Value, limit: Value) -> tuple[Status, str | None]:
    if _sort(found) != _sort(limit):
        return "unknown", (
            f"{expected.text}: {expected.name} is {_sort(found)}, which can't be compared with"
            f" {_sort(limit)}."
        )
    if _sort(found) != "a number" and expected.operator not in ("==", "!="):
        return "unknown", f"{expected.text}: {_sort(found)} is neither more nor less than another."
    return ("holds" if _COMPARE[expected.operator](found, limit) else "fails"), None


def _sort(value: Value) -> str:
    if isinstance(value, bool):
        return "true or false"
    return "a word" if isinstance(value, str) else "a number"


def _sentence(expected: Expectation, status: Status, found: str, limit: str) -> str:
    if status == "holds":
        return f"{expected.name} is {found}."
    wanted = " ".join(filter(None, (_WANTED[expected.operator], limit)))
    return f"{expected.name} is {found}, and should be {wanted}."
