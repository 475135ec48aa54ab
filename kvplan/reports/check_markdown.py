"""A check as Markdown: the summary of a job, or the comment on a pull request."""

from __future__ import annotations

from collections.abc import Iterator

from kvplan.check_result import CheckResult, Cost, Outcome, ScenarioResult
from kvplan.reports.check_text import summary
from kvplan.reports.check_traffic import requests_text, traffic_line, verdict_text
from kvplan.reports.clean import markdown_code, markdown_text
from kvplan.units import format_money

# A later run finds its own comment by this line and writes over it.
MARKER = "<!-- kvplan check -->"
# GitHub's limit for the body of a comment is 65,536 characters.
_LONGEST = 60_000
_MARKS: dict[Outcome, str] = {
    "passed": "✅ passed",
    "failed": "❌ failed",
    "unreadable": "❌ unreadable",
    "unobtainable": "⚠️ unobtainable",
    "refused": "⛔ refused",
}


def check_markdown(result: CheckResult) -> str:
    """The result as one body: a table of all scenarios, then what does not hold."""
    head = [MARKER, "## kvplan check", "", markdown_text(summary(result)), ""]
    return cut("\n".join([*head, *_table(result), *_details(result)]).rstrip() + "\n")


def cut(text: str) -> str:
    """A body that a comment can hold, cut between two lines."""
    if len(text) <= _LONGEST:
        return text
    whole = text[:_LONGEST].rpartition("\n")[0]
    return f"{whole}\n\n… and more; the job's log has it all.\n"


def _table(result: CheckResult) -> Iterator[str]:
    yield "| | scenario | verdict | requests | cost |"
    yield "|---|---|---|---:|---:|"
    for each in result.scenarios:
        cells = (
            _MARKS[each.outcome],
            markdown_code(each.name),
            markdown_text(verdict_text(each)),
            markdown_text(requests_text(each)),
            cost_text(each.cost),
        )
        yield f"| {' | '.join(cells)} |"
    yield ""


def cost_text(cost: Cost | None) -> str:
    """Money for a cell: by the hour, and by the request where that is known."""
    if cost is None:
        return ""
    hourly = f"{cost.per_hour:,.2f} {cost.currency}/h"
    if cost.per_request is None:
        return hourly
    return f"{hourly}, {format_money(cost.per_request, cost.currency, digits=4)}/request"


def _details(result: CheckResult) -> Iterator[str]:
    for each in result.scenarios:
        lines = list(_lines(each))
        if lines:
            yield f"### {markdown_code(each.name)}"
            yield ""
            yield _about(each)
            yield ""
            yield from lines
            yield ""


def _about(each: ScenarioResult) -> str:
    """Where it stands, and what came of it."""
    said = [each.headline, f"Traffic: {traffic_line(each.traffic)}" if each.traffic else None]
    text = markdown_text(" ".join(filter(None, said)))
    return markdown_code(str(each.place)) + (f": {text}" if text else "")


def _lines(result: ScenarioResult) -> Iterator[str]:
    if result.problem is not None:
        hint = f" {markdown_text(result.problem.hint)}" if result.problem.hint else ""
        yield f"- {markdown_text(result.problem.message)}{hint}"
    for assertion in result.assertions:
        if assertion.status != "holds":
            said = assertion.message.removeprefix(f"{assertion.text}: ")
            yield f"- ❌ {markdown_code(assertion.text)}: {markdown_text(said)}"
    for finding in result.findings:
        if finding.ignored is None:
            mark = "❌" if finding.level == "error" else "⚠️"
            yield (
                f"- {mark} {finding.code} {markdown_text(finding.message)}"
                f" *{markdown_text(finding.fix)}*"
            )
    for note in result.notes:
        yield f"- 📝 {markdown_text(note)}"
