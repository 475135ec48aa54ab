"""One entrance to all formats of a comparison; each is imported only when asked for."""

from __future__ import annotations

import json

from kvplan.engine_comparison import EngineComparison
from kvplan.reports.render import Format


def render_engines(
    comparison: EngineComparison,
    format: Format,  # noqa: A002 - as `render` calls it
    *,
    width: int = 100,
    color: bool = False,
    ascii_only: bool = False,
) -> str:
    """The comparison in one format, ending with a newline.

    Args:
        comparison: What is reported.
        format: ``text``, ``json`` (`kvplan.engines/1`), ``csv`` (a row an engine) or
            ``markdown``.
        width: Columns of the text report.
        color: ANSI colours in the text report.
        ascii_only: No character beyond ASCII in the text report.
    """
    match format:
        case "text":
            from kvplan.reports.engines_text import engines_text  # noqa: PLC0415  only what is asked for

            return engines_text(comparison, width=width, color=color, ascii_only=ascii_only)
        case "json":
            dumped = comparison.model_dump(mode="json", by_alias=True)
            return json.dumps(dumped, indent=2, allow_nan=False) + "\n"
        case "csv":
            from kvplan.reports.engines_csv import engines_csv  # noqa: PLC0415  only what is asked for

            return engines_csv(comparison)
        case "markdown":
            from kvplan.reports.engines_markdown import engines_markdown  # noqa: PLC0415  only what is asked for

            return engines_markdown(comparison)
