"""One entrance to all formats; each is imported only when asked for."""

from __future__ import annotations

from typing import Literal

from kvplan.plan import Plan

Format = Literal["text", "json", "csv", "markdown"]


def render(
    plan: Plan,
    format: Format,  # noqa: A002 - the name callers know from the command line
    *,
    explain: bool = False,
    width: int = 100,
    color: bool = False,
    ascii_only: bool = False,
) -> str:
    """The plan in one format, ending with a newline.

    Args:
        plan: What is reported.
        format: ``text`` for a terminal, ``json`` for `kvplan.plan/1`, ``csv`` for the ledger's
            lines, ``markdown`` for a pull request.
        explain: Formulas with their numbers and sources (text and markdown; JSON and CSV
            always have them).
        width: Columns of the text report.
        color: ANSI colours in the text report.
        ascii_only: No character beyond ASCII in the text report.
    """
    match format:
        case "text":
            from kvplan.reports.text_report import text_report

            return text_report(
                plan, explain=explain, width=width, color=color, ascii_only=ascii_only
            )
        case "json":
            from kvplan.reports.json_report import json_report

            return json_report(plan)
        case "csv":
            from kvplan.reports.csv_report import csv_report

            return csv_report(plan)
        case "markdown":
            from kvplan.reports.markdown_report import markdown_report

            return markdown_report(plan, explain=explain)
