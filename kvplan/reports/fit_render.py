"""One entrance to all formats of a search; each is imported only when asked for."""

from __future__ import annotations

import json

from kvplan.fit_result import FitResult
from kvplan.reports.render import Format

TOP = 10


def render_fit(
    found: FitResult,
    format: Format,  # noqa: A002 - as `render` calls it
    *,
    width: int = 100,
    color: bool = False,
    ascii_only: bool = False,
    top: int = TOP,
) -> str:
    """The result in one format, ending with a newline.

    Args:
        found: What is reported.
        format: ``text``, ``json`` (`kvplan.fit/1`), ``csv`` (a row a plan) or ``markdown``.
        width: Columns of the text report.
        color: ANSI colours in the text report.
        ascii_only: No character beyond ASCII in the text report.
        top: Plans that text and Markdown show.
    """
    match format:
        case "text":
            from kvplan.reports.fit_text import fit_text  # noqa: PLC0415  only what is asked for

            return fit_text(found, width=width, color=color, ascii_only=ascii_only, top=top)
        case "json":
            dumped = found.model_dump(mode="json", by_alias=True)
            return json.dumps(dumped, indent=2, allow_nan=False) + "\n"
        case "csv":
            from kvplan.reports.fit_csv import fit_csv  # noqa: PLC0415  only what is asked for

            return fit_csv(found)
        case "markdown":
            from kvplan.reports.fit_markdown import fit_markdown  # noqa: PLC0415  only what is asked for

            return fit_markdown(found, top=top)
