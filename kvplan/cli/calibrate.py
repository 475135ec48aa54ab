"""`kvplan calibrate`: this host's own starts → a profile that plans then use."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kvplan.cli import flags
from kvplan.cli.invocation import invocation_of

if TYPE_CHECKING:
    from kvplan.planning.calibrate import Calibration


# Characters of a file's name that a profile keeps as its own.
_LONGEST = 100


def calibrate(
    context: typer.Context,
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="Measurement records of one host, one JSON object a line (`kvplan read-log` "
            "writes them); - is standard input.",
            show_default=False,
        ),
    ],
    *,
    offline: flags.Offline = False,
    configs: flags.Configs = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Write the profile here instead of standard output.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Learn from starts how this host differs from plans.

    Write a profile for `kvplan size --profile`.

    One start moves the figures little, ten move them much.

    Exit code: 0 a profile was written, 2 the records can't be read or say nothing of memory.
    """
    from kvplan import api
    from kvplan.cli.output import write
    from kvplan.sources.measurements import read_measurements
    from kvplan.sources.profile import profile_text

    records = tuple(read_measurements(file))
    found = api.calibrate(records, offline=offline, configs=configs, name=_name(output))
    write(profile_text(found.profile), output)
    for line in _remarks(found):
        invocation_of(context).remark(line)


def _name(output: Path | None) -> str:
    named = output is not None and str(output) != "-"
    return f"host profile {output.name[:_LONGEST]}" if named and output else "host profile"


def _remarks(found: Calibration) -> list[str]:
    """What was learned, and what was of no use."""
    profile = found.profile
    parts = (
        f"weights × {profile.weights.value:.3f} (n {profile.weights.starts})",
        f"activation × {profile.activation.value:.2f} (n {profile.activation.starts})",
        f"non-torch {profile.non_torch.gib:+.2f} GiB (n {profile.non_torch.starts})",
        f"graphs × {profile.graphs.value:.2f} (n {profile.graphs.starts})",
    )
    count = f"{profile.starts} {'start' if profile.starts == 1 else 'starts'}"
    learned = f"{count} on {', '.join(profile.gpus)}: {', '.join(parts)}."
    return [learned, *(f"{name} says nothing: {reason}" for name, reason in found.skipped)]
