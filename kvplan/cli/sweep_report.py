"""A sweep leaves here, in the format that was asked for."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from kvplan.errors import UsageError

if TYPE_CHECKING:
    import typer

    from kvplan.sweep_result import Sweep

_BINARY = ("parquet", "png", "xlsx")
_LONG = ("csv", "json", "jsonl")


def report(
    context: typer.Context, found: Sweep, wanted: str, plot: str | None, output: Path | None
) -> None:
    """Writes the report, and a headline on stderr where it is not for people."""
    from kvplan.cli.invocation import invocation_of
    from kvplan.cli.output import write, write_stream
    from kvplan.reports.clean import clean
    from kvplan.reports.sweep_rows import headline

    to_file = output is not None and str(output) != "-"
    if wanted in _LONG:
        write_stream(_long(found, wanted), output)
    elif wanted in _BINARY:
        write_binary(lambda: _binary(found, wanted, plot), output)
    else:
        write(_text(found, wanted, plot, to_file=to_file), output)
    if to_file or wanted not in ("text", "markdown"):
        invocation_of(context).remark(clean(headline(found)))


def write_binary(made: Callable[[], bytes], output: Path | None) -> None:
    """Writes to a file, or to stdout where that is no terminal.

    Raises:
        UsageError: it is one.
    """
    from kvplan.cli.output import write_bytes

    if output is not None and str(output) != "-":
        write_bytes(made(), output)
        return
    if sys.stdout is None or sys.stdout.isatty():
        raise UsageError("A terminal can't show that.", hint="Write a file: --output sweep.png.")
    sys.stdout.buffer.write(made())
    sys.stdout.buffer.flush()


def _long(found: Sweep, wanted: str) -> Iterator[str]:
    match wanted:
        case "csv":
            from kvplan.reports.sweep_csv import sweep_csv

            return sweep_csv(found)
        case "json":
            from kvplan.reports.sweep_json import sweep_json

            return sweep_json(found)
        case _:
            from kvplan.reports.sweep_json import sweep_jsonl

            return sweep_jsonl(found)


def _binary(found: Sweep, wanted: str, plot: str | None) -> bytes:
    if wanted == "parquet":
        from kvplan.reports.sweep_parquet import sweep_parquet

        return sweep_parquet(found)
    if wanted == "xlsx":
        from kvplan.reports.workbook.sweep_book import sweep_workbook

        return sweep_workbook(found)
    from kvplan.reports.sweep_png import png

    return png(_picture(found, plot, dark=False))


def _text(found: Sweep, wanted: str, plot: str | None, *, to_file: bool) -> str:
    if wanted == "svg":
        return _picture(found, plot, dark=True)
    if wanted == "html":
        from kvplan.reports.page.sweep_page import sweep_page

        return sweep_page(found)
    if wanted == "markdown":
        from kvplan.reports.sweep_markdown import sweep_markdown

        return sweep_markdown(found)
    from kvplan.cli import terminal
    from kvplan.reports.sweep_text import sweep_text

    look = terminal.paper() if to_file else terminal.terminal()
    return sweep_text(
        found, width=look.width, color=look.color, ascii_only=look.ascii_only, plot=plot
    )


def _picture(found: Sweep, plot: str | None, *, dark: bool) -> str:
    from kvplan.reports.sweep_memory_svg import sweep_memory_svg
    from kvplan.reports.sweep_series import curves
    from kvplan.reports.sweep_svg import sweep_svg

    chosen = plot or ("concurrency" if curves(found) else "memory")
    return (
        sweep_svg(found, dark=dark)
        if chosen == "concurrency"
        else sweep_memory_svg(found, dark=dark)
    )
