"""`kvplan lock`: the facts that scenarios rest on, written down."""

from __future__ import annotations

from dataclasses import replace

import typer

from kvplan.cli import flags, scenario_flags
from kvplan.cli.invocation import invocation_of


def lock(
    context: typer.Context,
    files: scenario_flags.Files,
    *,
    overrides: scenario_flags.Set = None,
    output: scenario_flags.LockFile = None,
    allow_outside: scenario_flags.AllowOutside = False,
    jobs: scenario_flags.Jobs = 1,
    offline: flags.Offline = False,
) -> int:
    """Record the facts that scenarios rest on.

    Exit code: 0 written; 2 or 3 nothing was written, because a file can't be read or facts
    could not be had.
    """
    from kvplan.check_result import CheckResult, worst_first
    from kvplan.checking.locking import make_lock
    from kvplan.cli.output import target_of, write
    from kvplan.reports.check_text import check_text
    from kvplan.reports.figures import counted
    from kvplan.scenario.lock import dumped

    found = scenario_flags.scenario_files(files)
    path = scenario_flags.lock_path(output, found)
    settings = scenario_flags.settings(
        overrides=overrides or (), offline=offline, allow_outside=allow_outside, jobs=jobs
    )
    made, failed = make_lock(found, replace(settings, lock_folder=target_of(path).parent))
    for each in failed:
        if each.outcome == "refused":
            said = each.problem.message if each.problem else "it was refused."
            invocation_of(context).remark(f"kvplan: {each.name} is not locked: {said}")
    bad = tuple(each for each in failed if each.outcome != "refused")
    if bad:
        result = CheckResult(scenarios=worst_first(bad))
        write(check_text(result), None)
        invocation_of(context).remark("kvplan: nothing was locked.")
        return result.exit_code
    write(dumped(made), path)
    invocation_of(context).remark(
        f"kvplan: {counted(len(made.scenarios), 'scenario')} and"
        f" {counted(len(made.models), 'model')} locked in {path}."
    )
    return 0
