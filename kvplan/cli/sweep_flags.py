"""Flags that only `kvplan sweep` has."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from kvplan.cli.complete import complete_gpu, complete_model

Model = Annotated[
    str | None,
    typer.Argument(
        metavar="MODEL",
        help="Hub id (org/name, optionally @revision), folder, config.json or bundled id. Required,"
        " unless --vary model=... or --from-command names it.",
        autocompletion=complete_model,
        show_default=False,
    ),
]
Gpu = Annotated[
    str | None,
    typer.Option(
        "--gpu",
        metavar="GPU",
        help="Name of a GPU, auto (this machine's), or custom:48GiB. Required, unless --vary"
        " gpu=... names it.",
        autocompletion=complete_gpu,
        show_default=False,
    ),
]
Vary = Annotated[
    list[str] | None,
    typer.Option(
        "--vary",
        metavar="NAME=VALUES",
        help="An input and its values: context=8k..128k*2 (times two), concurrency=1..200 (or"
        " +5), kv_dtype=auto,fp8, gpu='H100*,H200', tp=1,2,4, engine=vllm,sglang, model=A,B,"
        " weights=auto,fp8, or any option of the engine: max_num_seqs=64,256. Semicolons part"
        " values that hold commas. Repeatable: every combination is planned. Takes the place of"
        " the input's own flag.",
        show_default=False,
    ),
]
Format = Annotated[
    Literal["text", "csv", "json", "jsonl", "markdown", "parquet", "svg", "png", "xlsx", "html"]
    | None,
    typer.Option(
        "--format",
        case_sensitive=False,
        help="text for people, csv, json, jsonl and parquet for every point, markdown for a pull"
        " request, svg and png for a picture, xlsx for a workbook, html for a page.",
        show_default="by the ending of --output, else text",
    ),
]
Plot = Annotated[
    Literal["concurrency", "memory"] | None,
    typer.Option(
        "--plot",
        case_sensitive=False,
        help="What svg, png and text draw: requests held against context, or one GPU's memory"
        " against requests.",
        show_default="memory where no number but concurrency is varied",
    ),
]
Simulate = Annotated[
    bool,
    typer.Option(
        "--simulate",
        help="Run traffic through every point, as `kvplan simulate` does with the same flags;"
        " rate, speed, seed and the like may be varied too.",
    ),
]
Executor = Annotated[
    Literal["processes", "ray"],
    typer.Option(
        "--executor",
        case_sensitive=False,
        help="Where simulations run: processes of this machine, or a Ray cluster.",
    ),
]
Jobs = Annotated[
    str | None,
    typer.Option(
        "--jobs",
        metavar="N",
        help="Simulations at once.",
        show_default="as many as there are processors",
    ),
]
RayAddress = Annotated[
    str | None,
    typer.Option(
        "--ray-address",
        metavar="ADDRESS",
        help="The cluster: HOST:PORT, ray://HOST:PORT, auto, or local to start one here.",
        show_default="RAY_ADDRESS, else auto",
    ),
]
