"""What a file's ending means: the plan in that form, and the file written whole."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from kvplan.errors import UsageError, shown
from kvplan.plan import Plan
from kvplan.plan_book import PlanBook
from kvplan.reports.render import Format, render
from kvplan.reports.sweep_csv import sweep_csv
from kvplan.reports.sweep_json import sweep_json
from kvplan.reports.sweep_markdown import sweep_markdown
from kvplan.reports.sweep_text import sweep_text
from kvplan.sweep_result import Sweep

TEXTS: Mapping[str, Format] = {
    ".json": "json",
    ".csv": "csv",
    ".md": "markdown",
    ".markdown": "markdown",
    ".txt": "text",
}
_COLUMNS = 120
ENDINGS = (".xlsx", ".html", *TEXTS)


def ending_of(file: Path) -> str:
    """The ending, in small letters.

    Raises:
        UsageError: none that means a form.
    """
    ending = file.suffix.lower()
    if ending not in ENDINGS:
        raise UsageError(
            f"No form of a plan has the ending {shown(ending)}.",
            hint=f"End the file's name in {', '.join(ENDINGS)}.",
            location="FILE",
        )
    return ending


def rendered(book: PlanBook, ending: str) -> bytes:
    """The plan in the form of that ending.

    Raises:
        UsageError: an extra is not installed, or a workbook of a refusal.
    """
    if ending == ".xlsx":
        from kvplan.reports.workbook.render import workbook  # noqa: PLC0415  an extra

        return workbook(book)
    if ending == ".html":
        from kvplan.reports.page.render import page  # noqa: PLC0415  an extra

        return page(book).encode()
    return _text(book.plan, TEXTS[ending]).encode()


def _text(plan: Plan, form: Format) -> str:
    return render(plan, form, explain=True, width=_COLUMNS)


def rendered_sweep(sweep: Sweep, ending: str) -> bytes:
    """The sweep in the form of that ending.

    Raises:
        UsageError: an extra is not installed, or there is too much of it for that form.
    """
    match ending:
        case ".xlsx":
            from kvplan.reports.workbook.sweep_book import sweep_workbook  # noqa: PLC0415  an extra

            return sweep_workbook(sweep)
        case ".html":
            from kvplan.reports.page.sweep_page import sweep_page  # noqa: PLC0415  an extra

            return sweep_page(sweep).encode()
        case ".csv":
            return "".join(sweep_csv(sweep)).encode()
        case ".json":
            return "".join(sweep_json(sweep)).encode()
        case ".txt":
            return sweep_text(sweep, width=_COLUMNS, color=False, ascii_only=False).encode()
        case _:
            return sweep_markdown(sweep).encode()


def write_whole(data: bytes, path: Path) -> None:
    """Writes a file whole or not at all.

    Raises:
        UsageError: it can't be written.
    """
    target = path.resolve()
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:100]}.")
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(data)
            Path(name).chmod(target.stat().st_mode & 0o777 if target.exists() else 0o644)
            Path(name).replace(target)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise UsageError(
            f"The file can't be written: {error.strerror or error}.",
            hint="Name a file in a folder that exists and may be written to.",
            location=str(path),
        ) from error
