"""`kvplan init`: a first scenario file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kvplan.cli import flags
from kvplan.cli.invocation import invocation_of
from kvplan.errors import UsageError

if TYPE_CHECKING:
    from kvplan.engines.vllm.command_read import Command

_FILE = "kvplan.yaml"


def init(
    context: typer.Context,
    *,
    from_command: Annotated[
        str | None,
        typer.Option(
            "--from-command",
            metavar="LINE",
            help="The command that starts vLLM today: 'vllm serve MODEL ...', or docker run.",
            show_default=False,
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            metavar="MODEL",
            help="The model, where no command names one.",
            show_default=False,
        ),
    ] = None,
    gpu: flags.Gpu = None,
    engine: Annotated[
        str | None,
        typer.Option(
            "--engine",
            metavar="ENGINE",
            help="Serving engine, pinned: vllm==0.33.0.",
            show_default="the command's release, else the newest modelled",
        ),
    ] = None,
    name: Annotated[
        str, typer.Option("--name", metavar="NAME", help="What the scenario is called.")
    ] = "first",
    output: flags.Output = None,
    force: Annotated[bool, typer.Option("--force", help="Write over a file that exists.")] = False,
) -> None:
    """Write a commented scenario file to start from.

    Exit code: 0 written, 2 a wrong argument, or the file exists.
    """
    from kvplan.cli.output import write
    from kvplan.scenario.starter import starter
    from kvplan.sources.gpus import find_gpus

    if gpu is None:
        raise UsageError("--gpu is missing.", hint="Name one, such as H100-SXM-80GB.")
    _check_new(output, force=force)
    find_gpus(gpu)
    command = None if from_command is None else _read(from_command)
    text = starter(
        gpu=gpu,
        engine=_engine(engine, command),
        file=_FILE if output is None else str(output),
        command=from_command,
        read=command,
        model=model,
        name=_name(name),
    )
    write(text, output)
    if output is not None and str(output) != "-":
        invocation_of(context).remark(f"kvplan: wrote {output}; try `kvplan check {output}`.")


def _check_new(output: Path | None, *, force: bool) -> None:
    if output is not None and not force and output.is_file():
        raise UsageError(
            "The file exists.", hint="Name another, or give --force.", location=str(output)
        )


def _read(text: str) -> Command:
    from kvplan.scenario.command import read_command

    return read_command(text, "--from-command")


def _engine(wanted: str | None, command: Command | None) -> str:
    from kvplan.engines.registry import PLACES, Engines

    name, pin, version = (wanted or "vllm").partition("==")
    if name not in PLACES:
        raise UsageError(f"There is no engine {name!r}.", hint=f"Modelled: {', '.join(PLACES)}.")
    if pin:
        return f"{name}=={version}"
    if command is not None and command.version is not None:
        return f"vllm=={command.version}"
    return f"{name}=={Engines(PLACES)[name].newest}"


def _name(name: str) -> str:
    import re

    from kvplan.errors import shown

    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._ -]{0,99}", name, re.ASCII):
        raise UsageError(
            f"{shown(name)} is no name of a scenario.", hint="Use letters, digits, - and _."
        )
    return name
