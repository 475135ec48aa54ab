"""`kvplan read-log`: an engine's start-up log → measurement records."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from kvplan.cli.invocation import invocation_of

Format = Annotated[
    Literal["text", "json", "jsonl"] | None,
    typer.Option(
        "--format",
        case_sensitive=False,
        help="text for people, json for one object, jsonl for one record a line. "
        "Default: text on a terminal, else jsonl.",
        show_default=False,
    ),
]


def read_log(
    context: typer.Context,
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="The log, also gzipped; - reads standard input.",
            show_default=False,
        ),
    ],
    *,
    gpu: Annotated[
        str | None,
        typer.Option(
            "--gpu",
            metavar="GPU",
            help="The card it ran on, which most logs do not name: kept in records without one.",
            show_default=False,
        ),
    ] = None,
    report_format: Format = None,
) -> None:
    """Read an engine's start-up log.

    One measurement record for each start: logs of vLLM, SGLang, TensorRT-LLM, llama.cpp and
    Ollama, plain or as containers and log shippers wrap them. What a log does not say is null.

    Exit code: 0 a start was found, 2 none was.
    """
    from kvplan.cli.records import write_records
    from kvplan.sources.logs.reader import read_log as read

    records = read(file)
    if gpu is not None:
        from kvplan.sources.gpus import find_gpu

        card = find_gpu(gpu).id
        records = (r if r.gpu else r.model_copy(update={"gpu": card}) for r in records)
    count = write_records(records, report_format)
    invocation_of(context).remark(f"{count} {'start' if count == 1 else 'starts'} found.")
