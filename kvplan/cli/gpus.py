"""`kvplan gpus`: the bundled GPUs with their sources, and this machine's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from kvplan.cli.complete import complete_gpu
from kvplan.cli.invocation import invocation_of
from kvplan.errors import shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kvplan.hardware import GpuSpec

app: typer.Typer = typer.Typer(
    help="Bundled GPUs and their sources; this machine's GPUs.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

Format = Annotated[
    Literal["text", "json"],
    typer.Option("--format", case_sensitive=False, help="text for people, json for every field."),
]


@app.callback(invoke_without_command=True)
def _gpus(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        list_all()


@app.command("list")
def list_all(*, report_format: Format = "text") -> None:
    """List the bundled GPUs: memory, bandwidth, speed."""
    from kvplan.sources.gpus import list_gpus

    _print_list(list_gpus(), report_format)


@app.command()
def search(
    context: typer.Context,
    text: Annotated[
        str,
        typer.Argument(
            metavar="TEXT", help="Part of a name, vendor or architecture.", show_default=False
        ),
    ],
    *,
    report_format: Format = "text",
) -> int:
    """List the bundled GPUs with TEXT in a name, vendor or architecture.

    Exit code: 0 there are some, 1 there is none.
    """
    from kvplan.sources.gpus import search_gpus

    found = search_gpus(text)
    if found or report_format == "json":
        _print_list(found, report_format)
    if not found:
        invocation_of(context).remark(f"No bundled GPU matches {shown(text)}.")
    return 0 if found else 1


@app.command()
def show(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="Name of a GPU, or auto (this machine's).",
            autocompletion=complete_gpu,
            show_default=False,
        ),
    ],
    *,
    report_format: Format = "text",
) -> None:
    """Show one GPU, each figure with its source."""
    from kvplan.cli.output import write
    from kvplan.reports.gpus_json import gpu_json
    from kvplan.sources.gpus import find_gpu

    gpu = find_gpu(name)
    if report_format == "json":
        write(gpu_json(gpu), None)
        return

    from kvplan.cli.terminal import terminal
    from kvplan.reports.gpus import gpu_text

    look = terminal()
    write(gpu_text(gpu, width=look.width, color=look.color, ascii_only=look.ascii_only), None)


@app.command()
def detect(*, report_format: Format = "text") -> None:
    """Read this machine's GPUs from the NVIDIA driver.

    Exit code: 3 without a driver or a GPU.
    """
    from kvplan.cli.output import write
    from kvplan.reports.gpus_json import detected_json
    from kvplan.sources.nvml import detect as read

    found = read()
    if report_format == "json":
        write(detected_json(found), None)
        return

    from kvplan.cli.terminal import terminal
    from kvplan.reports.gpus import detected_text

    look = terminal()
    write(
        detected_text(found, width=look.width, color=look.color, ascii_only=look.ascii_only), None
    )


def _print_list(gpus: Sequence[GpuSpec], report_format: Literal["text", "json"]) -> None:
    from kvplan.cli.output import write
    from kvplan.reports.gpus_json import gpu_list_json

    if report_format == "json":
        write(gpu_list_json(gpus), None)
        return

    from kvplan.cli.terminal import terminal
    from kvplan.reports.gpus import gpu_list_text

    look = terminal()
    write(gpu_list_text(gpus, width=look.width, color=look.color, ascii_only=look.ascii_only), None)
