"""Arguments and flags that the commands for scenario files share."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kvplan.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kvplan.checking.settings import Settings

Files = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILE", help="Scenario files (YAML); folders are searched.", show_default=False
    ),
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="[SCENARIO:]KEY=VALUE",
        help="Set a key of all scenarios, or of one: tp=2, chat:options.max_num_seqs=64."
        " Repeatable.",
        show_default=False,
    ),
]
AllowOutside = Annotated[
    bool,
    typer.Option(
        "--allow-outside", help="Paths in scenario files may leave their file's repository."
    ),
]
Jobs = Annotated[
    int,
    typer.Option(
        "--jobs", "-j", min=1, max=64, metavar="N", help="Scenarios read and planned at once."
    ),
]
LockFile = Annotated[
    Path | None,
    typer.Option(
        "--lock",
        metavar="FILE",
        help="The lock.",
        show_default="kvplan.lock beside the files or in a folder above",
    ),
]

_ENDINGS = (".yaml", ".yml")
_SCHEMA_LINE = b"schema: kvplan.scenario/"
_START = 4096


def scenario_files(paths: Sequence[Path]) -> list[Path]:
    """The files named, and every scenario file below the folders named."""
    found: list[Path] = []
    for path in paths:
        found += scenario_files_below(path) if path.is_dir() else [path]
    if not found:
        raise no_files()
    return list(dict.fromkeys(found))


def scenario_files_below(folder: Path) -> list[Path]:
    """Every scenario file below a folder, in order."""
    below = sorted(each for each in folder.rglob("*") if may_be_scenario(each))
    return [each for each in below if each.is_file() and says_scenario(_start_of(each))]


def no_files() -> UsageError:
    """There was nothing to check."""
    return UsageError(
        "There is no scenario file in that folder.",
        hint="A scenario file has the line `schema: kvplan.scenario/1`.",
    )


def may_be_scenario(path: Path) -> bool:
    """Whether a file is called like one."""
    return path.suffix in _ENDINGS


def says_scenario(content: bytes) -> bool:
    """Whether a file says that it is one."""
    return _SCHEMA_LINE in content[:_START]


def _start_of(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_START)


def lock_path(wanted: Path | None, files: Sequence[Path]) -> Path:
    """The lock that is meant: the one named, else the nearest, else one beside the first file."""
    if wanted is not None:
        return wanted
    from kvplan.scenario.boundary import root_of

    folder, root = files[0].resolve().parent, root_of(files[0])
    for each in (folder, *folder.parents):
        if (each / "kvplan.lock").is_file():
            return _relative(each / "kvplan.lock")
        if each == root:
            break
    return _relative(folder / "kvplan.lock")


def _relative(path: Path) -> Path:
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def settings(
    *, overrides: Sequence[str], offline: bool, allow_outside: bool, jobs: int
) -> Settings:
    """What holds for one run, from the flags that all commands share."""
    from kvplan.checking.settings import Settings
    from kvplan.scenario.overrides import parse_overrides

    return Settings(
        variables=dict(os.environ),
        overrides=parse_overrides(overrides),
        offline=offline,
        inside=not allow_outside,
        jobs=jobs,
    )


def to_file(output: Path | None) -> bool:
    """Whether a report goes to a file, where no colours are wanted."""
    return output is not None and str(output) != "-" and sys.stdout is not None
