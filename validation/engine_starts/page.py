"""Reports as a page of Markdown tables."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from engine_starts.notes import Compared, Report


def section(title: str, report: Report) -> Iterator[str]:
    """The lines of one engine."""
    yield f"## {title}"
    yield ""
    yield f"{report.rows} starts: {', '.join(_counts(report))}."
    yield ""
    yield from _pools(report)
    yield from _starts(report)
    yield from _reasons("Tokens not compared, as the flags don't suffice:", report.not_started)
    yield from _reasons("Left out:", report.left_out)


def _counts(report: Report) -> Iterator[str]:
    exact = sum(bool(row.exact) for row in report.pools)
    if report.pools:
        yield f"{exact} of {len(report.pools)} sizes equal within the print's rounding"
    if report.starts:
        yield f"tokens of {len(report.starts)} compared"
    yield f"{len(report.left_out)} left out"


def _pools(report: Report) -> Iterator[str]:
    if not report.pools:
        return
    yield "| start | cache | printed GiB | computed GiB | error | within rounding | note |"
    yield "| --- | --- | ---: | ---: | ---: | --- | --- |"
    for row in report.pools:
        yield _line(
            row,
            f"{row.measured:.3f}",
            f"{row.predicted:.3f}",
            f"{row.error:+.2%}",
            "yes" if row.exact else "no",
            report.causes.get(row.id, "") if not _is_start(row, report) else "",
        )
    yield ""


def _starts(report: Report) -> Iterator[str]:
    if not report.starts:
        return
    yield "| start | from | printed tokens | computed | range | error | cause |"
    yield "| --- | --- | ---: | ---: | ---: | ---: | --- |"
    for row in report.starts:
        ends = "-" if row.low is None or row.high is None else f"{row.low:,.0f}–{row.high:,.0f}"
        yield _line(
            row,
            f"{row.measured:,.0f}",
            f"{row.predicted:,.0f}",
            ends,
            f"{row.error:+.2%}",
            report.causes.get(row.id, ""),
        )
    yield ""


def _is_start(row: Compared, report: Report) -> bool:
    return any(row.id == start.id for start in report.starts)


def _line(row: Compared, *cells: str) -> str:
    return f"| {row.id} | {row.what.replace('|', '/')} | {' | '.join(cells)} |"


def _reasons(title: str, reasons: Mapping[str, str]) -> Iterator[str]:
    """Rows that are not in a table, by reason."""
    if not reasons:
        return
    by_reason: defaultdict[str, list[str]] = defaultdict(list)
    for key, reason in reasons.items():
        by_reason[reason].append(key)
    yield title
    yield ""
    for reason, keys in sorted(by_reason.items(), key=lambda item: (-len(item[1]), item[0])):
        yield f"- {reason}: {', '.join(keys)}"
    yield ""
