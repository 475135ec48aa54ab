"""A diff for people."""

from __future__ import annotations

from collections.abc import Iterator

from kvplan.check_diff import Diff, ScenarioDiff
from kvplan.reports.clean import ascii_text, clean
from kvplan.reports.diff_rows import change, sides, title
from kvplan.reports.figures import counted

_MARKS = {"better": "+", "worse": "-", "other": " "}


def diff_text(diff: Diff, *, ascii_only: bool = False) -> str:
    """The diff as lines; a minus in front of what became worse, a plus of what became better."""
    lines = [f"{clean(diff.old)} → {clean(diff.new)}", ""]
    lines += [line for each in diff.scenarios if each.status != "same" for line in _lines(each)]
    same = sum(each.status == "same" for each in diff.scenarios)
    lines.append(f"{counted(len(diff.scenarios), 'scenario')}: {same:,} the same.")
    text = "\n".join(lines) + "\n"
    return ascii_text(text) if ascii_only else text


def _lines(each: ScenarioDiff) -> Iterator[str]:
    yield f"{title(each)} {clean(each.name)}"
    names = max((len(row.name) for row in each.rows), default=0)
    for row in each.rows:
        old, new = sides(row)
        by = change(row)
        said = f"{clean(old)} → {clean(new)}" + (f"  {by}" if by else "")
        yield f"{_MARKS[row.way]} {clean(row.name):<{names}}  {said}"
    yield ""
