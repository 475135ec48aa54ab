"""`kvplan validate`: measured engine starts against what kvplan says of them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from kvplan.cli import flags

_Format = Annotated[
    Literal["text", "json"],
    typer.Option("--format", case_sensitive=False, help="text for people, json for every record."),
]


def validate(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="Measurement records, one JSON object a line; - is standard input.",
            show_default=False,
        ),
    ],
    *,
    offline: flags.Offline = False,
    configs: Annotated[
        Path | None,
        typer.Option(
            "--configs",
            metavar="DIR",
            help="Folder of ORG--NAME/config.json, tried before the Hub and the bundled specs.",
            show_default=False,
        ),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Leave out records that carry a caution.")
    ] = False,
    report_format: _Format = "text",
    output: flags.Output = None,
) -> None:
    """Compare measured engine starts with what kvplan predicts.

    Exit code: 0 compared (however far off), 2 the records can't be read.
    """
    from kvplan import api
    from kvplan.cli.output import write
    from kvplan.errors import InputError
    from kvplan.sources.measurements import read_measurements
    from kvplan.sources.text_lines import name_of

    records = tuple(read_measurements(file))
    if not records:
        raise InputError(
            "The file has no records.",
            hint="Give measurement records, one a line; `kvplan read-log` writes them.",
            location=name_of(file),
        )
    validation = api.validate(records, offline=offline, configs=configs, strict=strict)
    if report_format == "json":
        from kvplan.reports.validation_json import validation_json

        write(validation_json(validation), output)
        return

    from kvplan.cli import terminal
    from kvplan.reports.validation_text import validation_text

    to_file = output is not None and str(output) != "-"
    look = terminal.paper() if to_file else terminal.terminal()
    write(
        validation_text(validation, width=look.width, color=look.color, ascii_only=look.ascii_only),
        output,
    )
