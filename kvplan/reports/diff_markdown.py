"""A diff as the body of one comment on a pull request."""

from __future__ import annotations

from collections.abc import Iterator

from kvplan.check_diff import Diff, DiffRow, ScenarioDiff
from kvplan.reports.check_markdown import cut
from kvplan.reports.clean import markdown_code, markdown_text
from kvplan.reports.diff_rows import change, sides, title
from kvplan.reports.figures import counted

# A later run finds its own comment by this line and writes over it.
MARKER = "<!-- kvplan diff -->"
_WAYS = {"better": "✅", "worse": "❌", "other": ""}
# What a reader asks for first; the rest is folded away.
_FIRST = frozenset(
    (
        *("outcome", "verdict", "requests", "cost_per_hour", "cost_per_request", "engine"),
        *("held_requests", "overload_risk", "replicas"),
        *("model.id", "model.revision", "gpu.id", "gpu.count", "context", "tokens_low"),
    )
)


def diff_markdown(diff: Diff) -> str:
    """The diff with its marker; scenarios that are the same are only counted."""
    same = sum(each.status == "same" for each in diff.scenarios)
    head = (
        f"{markdown_code(diff.old)} → {markdown_code(diff.new)}:"
        f" {len(diff.scenarios) - same:,} of {len(diff.scenarios):,} scenarios differ."
    )
    lines = [MARKER, "## kvplan diff", "", head, ""]
    for each in diff.scenarios:
        if each.status != "same":
            lines += _scenario(each)
    return cut("\n".join(lines).rstrip() + "\n")


def _scenario(each: ScenarioDiff) -> Iterator[str]:
    yield f"### {markdown_code(each.name)}: {title(each)}"
    yield ""
    yield from _table(tuple(row for row in each.rows if row.name in _FIRST))
    rest = tuple(row for row in each.rows if row.name not in _FIRST)
    if rest:
        yield f"<details><summary>{counted(len(rest), 'more line')}</summary>"
        yield ""
        yield from _table(rest)
        yield "</details>"
        yield ""


def _table(rows: tuple[DiffRow, ...]) -> Iterator[str]:
    if not rows:
        return
    yield "| | | old | new | change |"
    yield "|---|---|---:|---:|---:|"
    for row in rows:
        old, new = map(markdown_text, sides(row))
        yield f"| {_WAYS[row.way]} | {markdown_code(row.name)} | {old} | {new} | {change(row)} |"
    yield ""
