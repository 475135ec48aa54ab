"""A sweep of simulations leaves here, in the format that was asked for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from kvplan.cli.sweep_report import write_binary

if TYPE_CHECKING:
    import typer

    from kvplan.sweep_simulated import SimulatedSweep


def report(context: typer.Context, found: SimulatedSweep, wanted: str, output: Path | None) -> None:
    """Writes the report, and a headline on stderr where it is not for people."""
    from kvplan.cli.invocation import invocation_of
    from kvplan.cli.output import write, write_stream
    from kvplan.reports.clean import clean
    from kvplan.reports.sweep_simulated_rows import headline

    to_file = output is not None and str(output) != "-"
    if wanted in ("csv", "json", "jsonl"):
        write_stream(_long(found, wanted), output)
    elif wanted in ("parquet", "png"):
        write_binary(lambda: _binary(found, wanted), output)
    else:
        write(_text(found, wanted, to_file=to_file), output)
    if to_file or wanted not in ("text", "markdown"):
        invocation_of(context).remark(clean(headline(found)))


def _long(found: SimulatedSweep, wanted: str) -> Iterator[str]:
    from kvplan.reports.sweep_csv import sweep_csv
    from kvplan.reports.sweep_json import sweep_json, sweep_jsonl

    made = {"csv": sweep_csv, "json": sweep_json, "jsonl": sweep_jsonl}[wanted]
    return made(found)


def _binary(found: SimulatedSweep, wanted: str) -> bytes:
    if wanted == "parquet":
        from kvplan.reports.sweep_parquet import sweep_parquet

        return sweep_parquet(found)
    from kvplan.reports.sweep_png import png
    from kvplan.reports.sweep_simulated_rows import simulated_svg

    return png(simulated_svg(found, dark=False))


def _text(found: SimulatedSweep, wanted: str, *, to_file: bool) -> str:
    from kvplan.cli import terminal
    from kvplan.reports import sweep_simulated_rows as rows

    if wanted == "svg":
        return rows.simulated_svg(found)
    if wanted == "markdown":
        return rows.simulated_markdown(found)
    look = terminal.paper() if to_file else terminal.terminal()
    return rows.simulated_text(
        found, width=look.width, color=look.color, ascii_only=look.ascii_only
    )
