"""What holds for one run of the command, whichever subcommand it is."""

from __future__ import annotations

import sys
from dataclasses import dataclass

import typer


@dataclass
class Invocation:
    """The global flags.

    Attributes:
        quiet: No remarks on stderr; errors still.
        debug: A traceback with every error.
    """

    quiet: bool = False
    debug: bool = False

    def remark(self, text: str) -> None:
        """A line for the reader that is no part of the data."""
        if not self.quiet and sys.stderr is not None:
            sys.stderr.write(f"{text}\n")


def invocation_of(context: typer.Context) -> Invocation:
    """The invocation that `cli.main` made for this run."""
    return context.ensure_object(Invocation)
