"""Results and plans that an earlier run wrote as JSON."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from kvplan.check_result import CheckResult, Place, ScenarioResult
from kvplan.errors import InputError
from kvplan.plan import Plan
from kvplan.sources import stdin
from kvplan.sources.files import read_whole
from kvplan.sources.json_reader import parse_json_object

_LARGEST = 64 * 2**20


def read_result(path: Path) -> CheckResult:
    """Reads a result, or a plan of ``kvplan size --format json`` as a result with one scenario.

    Raises:
        UsageError: there is no such file.
        InputError: it is neither, or of another version.
    """
    data = parse_json_object(read_whole(path, limit=_LARGEST), str(path), limit=_LARGEST)
    schema = data.get("schema")
    try:
        if schema == "kvplan.plan/1":
            return _of_plan(Plan.model_validate(data), path)
        data.pop("exit_code", None)
        return CheckResult.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part)[:60] for part in first["loc"])
        raise InputError(
            f"This is neither a plan nor a result of kvplan check ({where}: {first['msg']}).",
            hint="Write one with --format json.",
            location=str(path),
        ) from None


def read_plan(path: Path) -> Plan:
    """Reads a plan of ``kvplan size --format json``; ``-`` is standard input.

    Raises:
        UsageError: there is no such file.
        InputError: it is none, or of another version.
    """
    read = stdin.read if str(path) in stdin.NAMES else None
    content = read(_LARGEST + 1) if read else read_whole(path, limit=_LARGEST)
    data = parse_json_object(content, str(path), limit=_LARGEST)
    try:
        return Plan.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part)[:60] for part in first["loc"])
        raise InputError(
            f"This is not a plan of kvplan size ({where}: {first['msg']}).",
            hint="Write one with kvplan size --format json.",
            location=str(path),
        ) from None


def _of_plan(plan: Plan, path: Path) -> CheckResult:
    scenario = ScenarioResult(
        name=plan.model.id,
        place=Place(file=str(path)),
        outcome="passed" if plan.verdict == "fits" else "failed",
        verdict=plan.verdict,
        requests=plan.capacity.requests if plan.capacity else None,
        plan=plan,
    )
    return CheckResult(scenarios=(scenario,))
