"""`kvplan models`: the bundled models, and what is read of any model."""

from __future__ import annotations

from typing import Annotated

import typer

from kvplan.cli import flags
from kvplan.cli.add import add
from kvplan.cli.complete import complete_model
from kvplan.cli.invocation import invocation_of
from kvplan.errors import shown

app: typer.Typer = typer.Typer(
    help="Bundled models, and what is read of any model.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
# What a request is shown for where the model does not state its own maximum.
_SHOWN_CONTEXT = 8192


@app.callback(invoke_without_command=True)
def _models(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        list_models()


@app.command("list")
def list_models() -> None:
    """List the ids of the bundled models, one a line."""
    from kvplan.cli.output import write
    from kvplan.sources.model_specs import list_model_specs

    write("".join(f"{name}\n" for name in list_model_specs()), None)


@app.command()
def search(
    context: typer.Context,
    text: Annotated[
        str, typer.Argument(metavar="TEXT", help="Part of an id, in any case.", show_default=False)
    ],
) -> int:
    """List the bundled models whose id contains TEXT.

    Exit code: 0 some do, 1 none does.
    """
    from kvplan.cli.output import write
    from kvplan.sources.model_specs import list_model_specs

    found = [name for name in list_model_specs() if text.casefold() in name.casefold()]
    write("".join(f"{name}\n" for name in found), None)
    if not found:
        invocation_of(context).remark(f"No bundled model's id contains {shown(text)}.")
    return 0 if found else 1


@app.command()
def show(
    model: Annotated[
        str,
        typer.Argument(
            metavar="ID",
            help="Id of a bundled model.",
            autocompletion=complete_model,
            show_default=False,
        ),
    ],
) -> None:
    """Print a bundled model's file, with its sources."""
    from kvplan.cli.output import write
    from kvplan.errors import ModelNotFoundError, nearest
    from kvplan.sources.model_specs import find_model_spec, list_model_specs

    path = find_model_spec(model)
    if path is None:
        raise ModelNotFoundError(
            f"No bundled model is called {model[:100]!r}.",
            hint=nearest(model, list_model_specs()) or "`kvplan models list` shows all.",
        )
    write(path.read_text(encoding="utf-8"), None)


@app.command()
def explain(
    model: flags.Model,
    *,
    context: flags.Length = None,
    offline: flags.Offline = False,
) -> None:
    """Print what is read of a model, layer by layer.

    Caches of identical layers, weights by component, and the defaults that were filled in.
    """
    from kvplan import api
    from kvplan.cli.arguments import parse_context
    from kvplan.cli.output import write
    from kvplan.cli.terminal import terminal
    from kvplan.reports.model_text import model_text

    asked = parse_context(context)
    spec = api.read_spec(model, offline=offline)
    tokens = asked if isinstance(asked, int) else spec.max_context or _SHOWN_CONTEXT
    look = terminal()
    text = model_text(
        spec, context=tokens, width=look.width, color=look.color, ascii_only=look.ascii_only
    )
    write(text, None)


app.command()(add)
