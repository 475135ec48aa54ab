"""The `kvplan` command: which subcommands there are, and how a run ends.

Only typer is imported on top here and in every module that this one imports, so that
``kvplan --help`` is quick; each command imports what it needs when it runs.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer
from typer.main import get_command

from kvplan._version import __version__
from kvplan.cli import ending, gpus, models
from kvplan.cli.calibrate import calibrate
from kvplan.cli.check import check
from kvplan.cli.diff import diff
from kvplan.cli.export import export
from kvplan.cli.fit import fit
from kvplan.cli.init import init
from kvplan.cli.invocation import Invocation, invocation_of
from kvplan.cli.lock import lock
from kvplan.cli.measure import measure
from kvplan.cli.read_log import read_log
from kvplan.cli.read_metrics import read_metrics
from kvplan.cli.schema import schema
from kvplan.cli.simulate import simulate
from kvplan.cli.size import size
from kvplan.cli.sweep import sweep
from kvplan.cli.traffic import traffic
from kvplan.cli.validate import validate

app: typer.Typer = typer.Typer(
    name="kvplan",
    help="Plan KV-cache memory: how many requests fit, what runs out first, what to change.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("size")(size)
app.command("fit")(fit)
app.command("sweep")(sweep)
app.command("simulate")(simulate)
app.command("traffic")(traffic)
app.command("export")(export)
app.command("check")(check)
app.command("diff")(diff)
app.command("lock")(lock)
app.command("init")(init)
app.command("schema")(schema)
app.command("read-log")(read_log)
app.command("read-metrics")(read_metrics)
app.command("validate")(validate)
app.command("measure")(measure)
app.command("calibrate")(calibrate)
app.add_typer(models.app, name="models")
app.add_typer(gpus.app, name="gpus")

# These hold for every command and may stand anywhere on its line.
_GLOBAL_FLAGS = ("-q", "--quiet", "--debug")


def main() -> None:
    """The console entry: runs the command line and exits with the contract's code."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Runs one command line and returns its exit code. Nothing escapes but what ends Python."""
    invocation = Invocation()
    return ending.exit_code(lambda: _dispatch(arguments, invocation), invocation)


def _dispatch(arguments: Sequence[str], invocation: Invocation) -> int:
    result = get_command(app).main(
        args=_globals_first(arguments), prog_name="kvplan", standalone_mode=False, obj=invocation
    )
    return result if isinstance(result, int) else 0


def _globals_first(arguments: Sequence[str]) -> list[str]:
    """The same words with the global flags in front, where the parser wants them."""
    words = list(arguments)
    end = words.index("--") if "--" in words else len(words)
    flags = [word for word in words[:end] if word in _GLOBAL_FLAGS]
    rest = [word for word in words[:end] if word not in _GLOBAL_FLAGS]
    return [*flags, *rest, *words[end:]]


def _show_version(wanted: bool) -> None:  # noqa: FBT001 - typer calls it so
    if wanted:
        typer.echo(f"kvplan {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _global_flags(
    context: typer.Context,
    *,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="No remarks on stderr; errors still.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show a traceback with an error.")] = False,
    version: Annotated[  # noqa: ARG001 - its callback does the work
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    invocation = invocation_of(context)
    invocation.quiet, invocation.debug = quiet, debug
    if context.invoked_subcommand is None:
        typer.echo(context.get_help(), err=True)
        raise typer.Exit(2)
