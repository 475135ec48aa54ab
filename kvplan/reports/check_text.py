"""A check for people: worst first, everything that doesn't hold with its place."""

from __future__ import annotations

from collections.abc import Iterator

from kvplan.check_result import Assertion, CheckResult, Finding, Outcome, ScenarioResult
from kvplan.reports.check_traffic import traffic_line
from kvplan.reports.clean import ascii_text, clean
from kvplan.reports.figures import counted

_WORDS: dict[Outcome, str] = {
    "passed": "passed",
    "failed": "FAILED",
    "unreadable": "UNREADABLE",
    "unobtainable": "UNOBTAINABLE",
    "refused": "REFUSED",
}
_GREEN, _RED, _YELLOW, _PLAIN = "\x1b[32m", "\x1b[31m", "\x1b[33m", "\x1b[0m"


def check_text(result: CheckResult, *, color: bool = False, ascii_only: bool = False) -> str:
    """The result as lines, never wrapped: a place has to stay one word for an editor to find it."""
    lines = [line for each in result.scenarios for line in _scenario(each, color=color)]
    text = "\n".join([*lines, summary(result)]) + "\n"
    return ascii_text(text) if ascii_only else text


def summary(result: CheckResult) -> str:
    """How many scenarios ended how, in one sentence."""
    parts = [f"{result.count(outcome):,} {outcome}" for outcome in _WORDS if result.count(outcome)]
    warnings = sum(
        each.level == "warning" and each.ignored is None
        for scenario in result.scenarios
        for each in scenario.findings
    )
    said = f"{counted(len(result.scenarios), 'scenario')}: {', '.join(parts) or 'none'}."
    return f"{said} {counted(warnings, 'warning')}." if warnings else said


def _scenario(result: ScenarioResult, *, color: bool) -> Iterator[str]:
    shade = _GREEN if result.outcome == "passed" else _RED
    word = _shaded(_WORDS[result.outcome], shade, color=color)
    yield f"{word} {clean(result.name)} ({clean(str(result.place))})"
    if result.headline:
        yield f"  {clean(result.headline)}"
    if result.traffic:
        yield f"  Traffic: {clean(traffic_line(result.traffic))}"
    if result.problem:
        yield (
            f"  {clean(result.problem.message)}"
            if "\n" not in result.problem.message
            else ("\n".join(f"  {clean(line)}" for line in result.problem.message.split("\n")))
        )
        if result.problem.hint:
            yield f"    {clean(result.problem.hint)}"
    for assertion in result.assertions:
        if assertion.status != "holds" or result.outcome != "passed":
            yield _assertion(assertion, color=color)
    for finding in result.findings:
        yield from _finding(finding, color=color)
    for note in result.notes:
        yield f"  note    {clean(note)}"
    yield ""


def _assertion(assertion: Assertion, *, color: bool) -> str:
    shade = _GREEN if assertion.status == "holds" else _RED
    word = _shaded(f"{assertion.status:<7}", shade, color=color)
    return f"  {word} {clean(assertion.message)} ({clean(str(assertion.place))})"


def _finding(finding: Finding, *, color: bool) -> Iterator[str]:
    if finding.ignored is not None:
        yield f"  ignored {finding.code} {finding.rule}: {clean(finding.ignored)}"
        return
    shade = _RED if finding.level == "error" else _YELLOW
    word = _shaded(f"{finding.level:<7}", shade, color=color)
    yield f"  {word} {finding.code} {clean(finding.message)} ({clean(str(finding.place))})"
    yield f"          {clean(finding.fix)}"


def _shaded(word: str, shade: str, *, color: bool) -> str:
    return f"{shade}{word}{_PLAIN}" if color else word
