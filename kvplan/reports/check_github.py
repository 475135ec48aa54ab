"""A check as GitHub's workflow commands: annotations at the lines of the scenario files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from kvplan.check_result import CheckResult, Level, Place, Problem
from kvplan.reports.check_text import summary

# GitHub shows ten errors and ten warnings of a step and drops the others without a word.
# Source: actions/toolkit, pull request 734 (docs/problem-matchers.md).
_MOST = 10
_PLACED = re.compile(r"\s*(.+?):(\d{1,9}):(\d{1,9}): (.*)", re.ASCII)


@dataclass(frozen=True, slots=True)
class _Annotation:
    level: Level
    place: Place
    title: str
    message: str


def check_github(result: CheckResult) -> str:
    """The annotations, worst first, and the summary as a notice."""
    found = list(_annotations(result))
    lines = [line for level in ("error", "warning") for line in _limited(found, level)]
    return "\n".join([*lines, f"::notice title=kvplan check::{_data(summary(result))}"]) + "\n"


def _annotations(result: CheckResult) -> Iterator[_Annotation]:
    for scenario in result.scenarios:
        name = scenario.name
        if scenario.problem is not None:
            yield from _problems(scenario.problem, scenario.place, name)
        for assertion in scenario.assertions:
            if assertion.status != "holds":
                yield _Annotation("error", assertion.place, name, assertion.message)
        for finding in scenario.findings:
            if finding.ignored is None:
                message = f"{finding.message}\n{finding.fix}"
                title = f"{name}: {finding.code} {finding.rule}"
                yield _Annotation(finding.level, finding.place, title, message)


def _problems(problem: Problem, place: Place, title: str) -> Iterator[_Annotation]:
    """A file with several problems has one line for each; each is shown at its own place."""
    first, *more = problem.message.split("\n")
    if not more:
        hint = f"\n{problem.hint}" if problem.hint else ""
        yield _Annotation("error", place, title, f"{first}{hint}")
    for each in more:
        match = _PLACED.fullmatch(each)
        if match is None:  # of a flag, or how many more there are
            yield _Annotation("error", place, title, each.strip())
            continue
        file, line, column, sentence = match.groups()
        where = Place(file=file, line=int(line), column=int(column))
        yield _Annotation("error", where, title, sentence)


def _limited(found: list[_Annotation], level: str) -> list[str]:
    of_level = [each for each in found if each.level == level]
    if len(of_level) <= _MOST:
        return [_command(each) for each in of_level]
    more = len(of_level) - _MOST + 1
    last = f"::{level} title=kvplan check::{more:,} more; the summary has them all."
    return [*(_command(each) for each in of_level[: _MOST - 1]), last]


def _command(each: _Annotation) -> str:
    properties = {
        "file": each.place.file,
        "line": str(each.place.line),
        "col": str(each.place.column),
        "title": each.title,
    }
    said = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    return f"::{each.level} {said}::{_data(each.message)}"


def _data(text: str) -> str:
    """Escaped as actions/toolkit does for the message of a command."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    """Escaped as actions/toolkit does for a property of a command."""
    return _data(text).replace(":", "%3A").replace(",", "%2C")
