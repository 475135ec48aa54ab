"""`kvplan check`: scenario files, judged."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from kvplan.cli import flags, scenario_flags
from kvplan.cli.invocation import invocation_of
from kvplan.errors import UsageError

if TYPE_CHECKING:
    from kvplan.check_result import CheckResult
    from kvplan.checking.settings import Settings

_Format = Annotated[
    Literal["text", "json", "junit", "github", "markdown", "sarif"],
    typer.Option(
        "--format",
        case_sensitive=False,
        help="text for people, json for every field, junit, github (annotations), markdown (a"
        " comment), sarif.",
    ),
]


def check(
    context: typer.Context,
    files: scenario_flags.Files,
    *,
    overrides: scenario_flags.Set = None,
    locked: Annotated[
        bool,
        typer.Option("--locked", help="Take every fact from the lock; read and ask nothing else."),
    ] = False,
    lock: scenario_flags.LockFile = None,
    baseline: Annotated[
        Path | None,
        typer.Option(
            "--baseline",
            metavar="FILE",
            help="An earlier result (--format json); holding fewer requests, or costing more,"
            " fails.",
            show_default=False,
        ),
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Warnings of rules fail too.")] = False,
    allow_outside: scenario_flags.AllowOutside = False,
    jobs: scenario_flags.Jobs = 1,
    offline: flags.Offline = False,
    report_format: _Format = "text",
    output: flags.Output = None,
) -> int:
    """Check scenario files: what they expect, and rules.

    Exit code: the worst of all scenarios: 0 all hold, 1 something does not, 2 a file can't be
    read, 3 facts could not be had, 4 refused.
    """
    from kvplan.checking.check import check as run

    found = scenario_flags.scenario_files(files)
    settings = scenario_flags.settings(
        overrides=overrides or (), offline=offline, allow_outside=allow_outside, jobs=jobs
    )
    settings = replace(settings, strict=strict, baseline=_baseline(baseline))
    settings = _with_lock(settings, scenario_flags.lock_path(lock, found), lock, locked=locked)
    result = run(found, settings)
    _write(result, report_format, output)
    if scenario_flags.to_file(output):
        from kvplan.reports.check_text import summary

        invocation_of(context).remark(f"kvplan: {summary(result)}")
    return result.exit_code


def _with_lock(settings: Settings, path: Path, wanted: Path | None, *, locked: bool) -> Settings:
    from kvplan.scenario.lock import read_lock

    if not path.is_file() and wanted is None and not locked:
        return settings
    if locked and not path.is_file():
        raise UsageError(
            "There is no lock to check by.",
            hint="Make one with `kvplan lock` and commit it.",
            location=str(path),
        )
    return replace(settings, lock=read_lock(path), lock_folder=path.resolve().parent, locked=locked)


def _baseline(path: Path | None) -> CheckResult | None:
    if path is None:
        return None
    from kvplan.sources.results import read_result

    return read_result(path)


def _write(result: CheckResult, report_format: str, output: Path | None) -> None:
    from kvplan.cli import terminal
    from kvplan.cli.output import write
    from kvplan.reports.render_check import render_check

    look = terminal.paper() if scenario_flags.to_file(output) else terminal.terminal()
    text = render_check(
        result,
        report_format,  # type: ignore[arg-type] # the same words
        color=look.color,
        ascii_only=look.ascii_only,
        when=_now(),
    )
    write(text, output)


def _now() -> str:
    """The time, or the one that a reproducible build states."""
    import os
    from datetime import UTC, datetime

    stated = os.environ.get("SOURCE_DATE_EPOCH", "")
    now = datetime.now(UTC)
    if stated.isascii() and stated.isdigit() and len(stated) <= len("99999999999"):
        now = datetime.fromtimestamp(int(stated), UTC)
    return now.strftime("%Y-%m-%dT%H:%M:%S")
