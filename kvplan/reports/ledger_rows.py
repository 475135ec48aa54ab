"""The ledger as a reader wants it: sections with subtotals, and groups of kindred lines."""

from __future__ import annotations

from itertools import groupby
from typing import Literal, NamedTuple

from kvplan.ledger import SECTIONS, Confidence, LedgerLine, Section, total

TITLES: dict[Section, str] = {
    "budget": "Before the cache",
    "pool": "KV cache",
    "outside": "Outside the budget",
    "free": "Left over",
}
_WEAKNESS: tuple[Confidence, ...] = ("exact", "derived", "calibrated", "assumed")


class Row(NamedTuple):
    """One row of the table.

    Attributes:
        depth: 0 for a section, 1 for a line or a group of lines, 2 for a line in a group.
        bytes: Of the line, or the sum of what the row heads; None where that would only repeat
            the one row below.
        low, high: The interval of a line; sums of intervals say nothing, so None elsewhere.
        confidence: Of the line, or the weakest in a group; empty for a section.
    """

    kind: Literal["section", "group", "line", "total"]
    depth: int
    label: str
    bytes: int | None
    low: int | None = None
    high: int | None = None
    confidence: str = ""


def ledger_rows(lines: tuple[LedgerLine, ...]) -> tuple[Row, ...]:
    """Rows in the order of the sections; ends with the total, unless there are no lines."""
    if not lines:
        return ()
    rows = [row for section in SECTIONS for row in _section(section, lines)]
    return (*rows, Row("total", 0, "Total", total(lines)))


def _section(section: Section, lines: tuple[LedgerLine, ...]) -> list[Row]:
    members = [line for line in lines if line.section == section]
    if not members:
        return []
    rows: list[Row] = []
    for head, group in groupby(members, key=lambda line: line.name.partition(".")[0]):
        rows += _group(head, tuple(group))
    subtotal = total(tuple(members)) if len(rows) > 1 else None
    return [Row("section", 0, TITLES[section], subtotal), *rows]


def _group(head: str, members: tuple[LedgerLine, ...]) -> list[Row]:
    if len(members) == 1:
        return [_line(members[0], 1, members[0].name)]
    weakest = max((line.confidence for line in members), key=_WEAKNESS.index)
    return [
        Row("group", 1, head, total(members), confidence=weakest),
        *(_line(line, 2, line.name.removeprefix(f"{head}.")) for line in members),
    ]


def _line(line: LedgerLine, depth: int, label: str) -> Row:
    return Row("line", depth, label, line.bytes, line.low, line.high, line.confidence)
