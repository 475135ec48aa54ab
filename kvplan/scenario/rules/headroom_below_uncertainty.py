"""KV109: less to spare than the plan itself may be off."""

from __future__ import annotations

from collections.abc import Iterator

from kvplan.scenario.facts import Missing
from kvplan.scenario.rules.base import Hit, Rule, Shown
from kvplan.scenario.values import headroom, uncertainty
from kvplan.sources.yaml_document import KeyPath


def _check(shown: Shown) -> Iterator[Hit]:
    facts = shown.facts
    if facts is None:
        return
    spare, unsure = headroom(facts), uncertainty(facts)
    if isinstance(spare, Missing) or isinstance(unsure, Missing):
        return
    if 0 <= spare < unsure:
        yield Hit(
            f"The headroom of {100 * spare:.1f} % is less than the plan's own uncertainty of"
            f" {100 * unsure:.1f} %.",
            f"Expect headroom >= {100 * unsure:.0f}%, or measure this host (kvplan calibrate).",
            _key(shown),
        )


def _key(shown: Shown) -> KeyPath:
    """Where the load is stated."""
    if shown.question.given("concurrency"):
        return ("concurrency",)
    return ("workload", "concurrency")


RULE = Rule(
    "KV109",
    "headroom-below-uncertainty",
    "warning",
    "The headroom is below the plan's own uncertainty.",
    _check,
)
