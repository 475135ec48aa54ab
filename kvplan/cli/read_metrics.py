"""`kvplan read-metrics`: a running engine's Prometheus page → measurement records."""

from __future__ import annotations

from typing import Annotated

import typer

from kvplan.cli.read_log import Format


def read_metrics(
    target: Annotated[
        str,
        typer.Argument(
            metavar="URL|FILE",
            help="The page's address (http://localhost:8000/metrics), a file of it, or -.",
            show_default=False,
        ),
    ],
    *,
    report_format: Format = None,
) -> None:
    """Read a running engine's metrics page.

    One measurement record for each replica of vLLM or SGLang: its cache, and the room left in it.

    Exit code: 0 read, 2 no such page, 3 nobody answers.
    """
    from kvplan.cli.records import write_records
    from kvplan.sources.metrics import read_metrics as read

    write_records(read(target), report_format)
