"""A validation for people: how far off each check is, the worst records, what was left out."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from kvplan.reports.figures import counted
from kvplan.reports.text_console import lay_out, spaced
from kvplan.reports.validation_misses import miss_tables
from kvplan.reports.validation_tables import error_table, skipped_table
from kvplan.validation import Validation, VerdictSummary


def validation_text(
    validation: Validation, *, width: int, color: bool, ascii_only: bool = False
) -> str:
    """The summary, then the misses, worst first, then what was skipped.

    Args:
        validation: What is reported.
        width: Columns.
        color: ANSI colours.
        ascii_only: No character beyond ASCII.
    """
    parts = _parts(validation, ascii_only=ascii_only)
    return lay_out(parts, width=width, color=color, ascii_only=ascii_only)


def _parts(validation: Validation, *, ascii_only: bool) -> Iterator[RenderableType]:
    summary = validation.summary
    compared = summary.records - summary.skipped
    yield Text(
        f"{counted(summary.records, 'record')}: {compared:,} compared, {summary.skipped:,} skipped",
        style="bold",
    )
    yield spaced(error_table(summary, ascii_only=ascii_only))
    yield spaced(Text(_verdicts(summary.verdict)))
    for made in miss_tables(validation.records, ascii_only=ascii_only):
        yield spaced(made)
    if any(record.not_checked for record in validation.records):
        yield spaced(skipped_table(summary, ascii_only=ascii_only))


def _verdicts(summary: VerdictSummary) -> str:
    if not summary.n:
        return "Verdict: no record states enough to judge whether it would have started."
    return (
        f"Verdict, {counted(summary.n, 'start')} judged: {summary.refusals_predicted} of"
        f" {counted(summary.refusals, 'refusal')} predicted, {summary.starts_called_refused} of"
        f" {summary.starts} that started called refused."
    )
