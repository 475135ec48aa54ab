"""One entrance to all formats of a check; each is imported only when asked for."""

from __future__ import annotations

from typing import Literal

from kvplan.check_result import CheckResult

CheckFormat = Literal["text", "json", "junit", "github", "markdown", "sarif"]


def render_check(
    result: CheckResult,
    format: CheckFormat,  # noqa: A002 - the name callers know from the command line
    *,
    color: bool = False,
    ascii_only: bool = False,
    when: str | None = None,
) -> str:
    """The result in one format, ending with a newline.

    Args:
        result: What is reported.
        format: ``text`` for people, ``json`` for `kvplan.check/1`, ``junit``, ``github``
            (annotations), ``markdown`` (a comment), ``sarif``.
        color: ANSI colours in the text.
        ascii_only: No character beyond ASCII in the text.
        when: The time that JUnit states, as ``2026-11-29T12:00:00``; None: that of no clock.
    """
    match format:
        case "text":
            from kvplan.reports.check_text import check_text

            return check_text(result, color=color, ascii_only=ascii_only)
        case "json":
            from kvplan.reports.check_json import check_json

            return check_json(result)
        case "junit":
            from kvplan.reports.check_junit import NO_TIME, check_junit

            return check_junit(result, when=when or NO_TIME)
        case "github":
            from kvplan.reports.check_github import check_github

            return check_github(result)
        case "markdown":
            from kvplan.reports.check_markdown import check_markdown

            return check_markdown(result)
        case "sarif":
            from kvplan.reports.check_sarif import check_sarif

            return check_sarif(result)
