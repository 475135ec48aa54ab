"""The tables of a validation's summary: errors by check, and reasons for skipping."""

from __future__ import annotations

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from kvplan.reports.clean import clean
from kvplan.reports.text_console import INDENT, table
from kvplan.validation import CHECK_NAMES, CheckName, ErrorSummary, Summary

_TITLES: dict[CheckName, str] = {
    "geometry": "geometry",
    "weights": "weights",
    "overhead": "overhead",
    "end_to_end": "end to end",
    "verdict": "verdict",
}
_NONE = "-"


def error_table(summary: Summary, *, ascii_only: bool) -> Table:
    """A column a check, a row a figure."""
    checks = (summary.geometry, summary.weights, summary.overhead, summary.end_to_end)
    titles = tuple(_TITLES[name] for name in CHECK_NAMES if name != "verdict")
    made = table(words=("Check",), numbers=titles, ascii_only=ascii_only)
    for label, *cells in zip(_LABELS, *map(_figures, checks), strict=True):
        if any(cell != _NONE for cell in cells):
            made.add_row(f"{' ' * INDENT}{label}", *cells)
    return made


_LABELS = (
    "records compared",
    "median error",
    "90th percentile",
    "worst",
    "worst record",
    "within 2 %",
    "within 5 %",
    "within 10 %",
    "more than 5 % too much",
    "90th percentile, of the card",
    "inside the stated range",
    "reachable from the printed bytes",
)


def _figures(check: ErrorSummary) -> tuple[str, ...]:
    worst = check.worst
    return (
        f"{check.n:,}",
        percent(check.median_relative_error, digits=2),
        percent(check.p90_relative_error, digits=2),
        signed(worst.relative_error) if worst else _NONE,
        clean(worst.id) if worst else _NONE,
        percent(check.within_2_percent),
        percent(check.within_5_percent),
        percent(check.within_10_percent),
        percent(check.optimistic_over_5_percent),
        percent(check.p90_share_of_card),
        percent(check.interval_coverage),
        percent(check.within_print_rounding),
    )


def percent(share: float | None, *, digits: int = 1) -> str:
    """A share in percent; a dash where there is none.

    >>> percent(0.0234), percent(0.0234, digits=2), percent(None)
    ('2.3 %', '2.34 %', '-')
    """
    return _NONE if share is None else f"{100 * share:.{digits}f} %"


def signed(error: float | None) -> str:
    """An error in percent with its sign: above zero too much was promised.

    >>> signed(0.25), signed(-0.0012), signed(None)
    ('+25.0 %', '-0.1 %', '-')
    """
    return _NONE if error is None else f"{100 * error:+.1f} %"


def skipped_table(summary: Summary, *, ascii_only: bool) -> Table:
    """A column a check, a row a kind of reason, the most frequent first."""
    by_check = {name: _skipped(summary, name) for name in CHECK_NAMES}
    reasons = dict.fromkeys(reason for skipped in by_check.values() for reason in skipped)
    made = table(
        words=("Skipped, by reason",), numbers=tuple(_TITLES.values()), ascii_only=ascii_only
    )
    counts = {
        reason: [skipped.get(reason, 0) for skipped in by_check.values()] for reason in reasons
    }
    for reason in sorted(counts, key=lambda each: -sum(counts[each])):
        cells = [f"{count:,}" if count else "" for count in counts[reason]]
        made.add_row(Padding(Text(clean(reason)), (0, 0, 0, INDENT)), *cells)
    return made


def _skipped(summary: Summary, name: CheckName) -> dict[str, int]:
    match name:
        case "geometry":
            return summary.geometry.skipped
        case "weights":
            return summary.weights.skipped
        case "overhead":
            return summary.overhead.skipped
        case "end_to_end":
            return summary.end_to_end.skipped
        case "verdict":
            return summary.verdict.skipped
