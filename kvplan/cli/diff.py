"""`kvplan diff`: two results, or the same scenarios in two revisions."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from kvplan.cli import flags, scenario_flags
from kvplan.cli.invocation import invocation_of
from kvplan.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from kvplan.check_diff import Diff
    from kvplan.check_result import CheckResult
    from kvplan.checking.settings import Settings
    from kvplan.sources.git import Revision

_NOW = "the working tree"
_Format = Annotated[
    Literal["text", "json", "markdown"],
    typer.Option(
        "--format",
        case_sensitive=False,
        help="text for people, json for every figure, markdown for one comment on a pull request.",
    ),
]


def diff(
    context: typer.Context,
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE",
            help="Two JSON files, the old one first (of size, or of check); with --git scenario"
            " files.",
            show_default=False,
        ),
    ],
    *,
    git: Annotated[
        str | None,
        typer.Option(
            "--git",
            metavar="REVISION",
            help="Compare the scenario files with those of this revision: main.",
            show_default=False,
        ),
    ] = None,
    locked: Annotated[
        bool,
        typer.Option("--locked", help="With --git: take each side's facts from its own lock."),
    ] = False,
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help="Exit with 1 if anything became worse.")
    ] = False,
    overrides: scenario_flags.Set = None,
    allow_outside: scenario_flags.AllowOutside = False,
    jobs: scenario_flags.Jobs = 1,
    offline: flags.Offline = False,
    report_format: _Format = "text",
    output: flags.Output = None,
) -> int:
    """Compare two plans or results.

    Exit code: 0 compared, 1 with --exit-code if anything became worse, 2 a file can't be read.
    """
    from kvplan.cli.output import write

    if git is None:
        found = _of_files(files)
    else:
        settings = scenario_flags.settings(
            overrides=overrides or (), offline=offline, allow_outside=allow_outside, jobs=jobs
        )
        remark = invocation_of(context).remark
        found = _of_git(git, files, settings, remark, locked=locked)
    write(_rendered(found, report_format, output), output)
    return int(exit_code and found.worse)


def _of_files(files: list[Path]) -> Diff:
    from kvplan.planning.diff import diff as compare
    from kvplan.sources.results import read_result

    if len(files) != 2:
        raise UsageError(
            "diff compares two files.",
            hint="Name the old and the new one, or give --git REVISION and scenario files.",
        )
    old, new = files
    return compare(read_result(old), read_result(new), names=(str(old), str(new)))


def _of_git(
    name: str,
    paths: list[Path],
    settings: Settings,
    remark: Callable[[str], None],
    *,
    locked: bool,
) -> Diff:
    from kvplan.planning.diff import diff as compare
    from kvplan.sources.git import Revision

    revision = Revision(name, _folder(paths[0]))
    then, now = _files_of(paths, revision)
    with tempfile.TemporaryDirectory(prefix="kvplan-") as folder:
        copies = Path(folder)
        before = replace(
            settings, read=revision.read, located=lambda path: revision.copied(path, copies)
        )
        after = settings
        if locked:
            before, after = _with_locks(before, after, revision, then or now)
        old = _checked(then, before)
    new = _checked(now, after)
    for side, result in ((name, old), (_NOW, new)):
        for each in result.scenarios:
            if each.problem is not None:
                remark(f"kvplan: not planned in {side}: {each.name}: {each.problem.message}")
    return compare(old, new, names=(name, _NOW))


def _folder(path: Path) -> Path:
    """The nearest folder of a path that is there."""
    found = path.resolve()
    return next(each for each in (found, *found.parents) if each.is_dir())


def _files_of(paths: list[Path], revision: Revision) -> tuple[list[Path], list[Path]]:
    """The scenario files of both sides: below a folder those that are gone or new as well."""
    then, now = [], []
    for path in paths:
        if path.is_dir():
            then += [each for each in revision.below(path) if _is_scenario(each, revision)]
            now += scenario_flags.scenario_files_below(path)
            continue
        if revision.has(path):
            then.append(path)
        if path.exists():
            now.append(path)
        elif not revision.has(path):
            raise UsageError(
                f"There is no file or folder {str(path)!r}.",
                hint="Check the path.",
            )
    if not then and not now:
        raise scenario_flags.no_files()
    return list(dict.fromkeys(then)), list(dict.fromkeys(now))


def _is_scenario(path: Path, revision: Revision) -> bool:
    return scenario_flags.may_be_scenario(path) and scenario_flags.says_scenario(
        revision.read_any(path)
    )


def _checked(files: list[Path], settings: Settings) -> CheckResult:
    """One side; it may have no scenarios, where all are new or all are gone."""
    from kvplan.check_result import CheckResult
    from kvplan.checking.check import check
    from kvplan.errors import InputError

    try:
        return check(files, settings)
    except InputError:
        return CheckResult(scenarios=())


def _with_locks(
    before: Settings, after: Settings, revision: Revision, files: list[Path]
) -> tuple[Settings, Settings]:
    """Both sides with the lock that lies at the same path."""
    from kvplan.scenario.lock import parse_lock, read_lock

    path = scenario_flags.lock_path(None, files)
    folder = path.resolve().parent
    if not revision.has(path):
        raise UsageError(
            f"{revision.name} has no {path}.",
            hint="Commit the lock there, or compare without --locked.",
        )
    old = parse_lock(revision.read_any(path), f"{revision.name}:{path}")
    return (
        replace(before, lock=old, lock_folder=folder, locked=True),
        replace(after, lock=read_lock(path), lock_folder=folder, locked=True),
    )


def _rendered(found: Diff, report_format: str, output: Path | None) -> str:
    if report_format == "json":
        import json

        return json.dumps(found.model_dump(mode="json", by_alias=True), indent=2) + "\n"
    if report_format == "markdown":
        from kvplan.reports.diff_markdown import diff_markdown

        return diff_markdown(found)
    from kvplan.cli import terminal
    from kvplan.reports.diff_text import diff_text

    look = terminal.paper() if scenario_flags.to_file(output) else terminal.terminal()
    return diff_text(found, ascii_only=look.ascii_only)
