"""All rules over one variant, with what the file's comments ignore."""

from __future__ import annotations

from kvplan.check_result import Finding, Place
from kvplan.scenario.layers import Layered
from kvplan.scenario.rules.base import Hit, Rule, Shown
from kvplan.scenario.rules.table import RULES


def lint(shown: Shown) -> tuple[Finding, ...]:
    """What the rules find, in the order of their codes."""
    return tuple(_finding(shown, rule, hit) for rule in RULES for hit in rule.check(shown))


def _finding(shown: Shown, rule: Rule, hit: Hit) -> Finding:
    place = shown.question.place(hit.path)
    return Finding(
        code=rule.code,
        rule=rule.name,
        level=rule.level,
        message=hit.message,
        fix=hit.fix,
        place=place,
        ignored=reason_to_ignore(shown.question.variant.layered, rule.code, place),
    )


def reason_to_ignore(layered: Layered, code: str, place: Place) -> str | None:
    """Why a finding is ignored: by a comment at its own line, or at the scenario's name."""
    for where in (place, layered.document.place()):
        for ignore in layered.ignores.get((where.file, where.line), ()):
            if ignore.code == code:
                return ignore.reason
    return None
