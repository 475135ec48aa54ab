"""Files → questions; what can't be read becomes a result, and the rest goes on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kvplan.check_result import EXIT_CODES, Finding, Outcome, Place, Problem, ScenarioResult
from kvplan.checking.settings import Settings
from kvplan.errors import InputError, InternalError, KvplanError
from kvplan.scenario.layers import Layered, layered, pools
from kvplan.scenario.load import Sources, load
from kvplan.scenario.matrix import expand
from kvplan.scenario.overrides import check_names
from kvplan.scenario.pool_use import PoolUse
from kvplan.scenario.question import Question, question
from kvplan.scenario.schema import Pool

_OUTCOMES: Mapping[int, Outcome] = {code: outcome for outcome, code in EXIT_CODES.items()}
_Pools = Mapping[str, tuple[Pool, Place]]


@dataclass(slots=True)
class Collected:
    """What the files ask.

    Attributes:
        pool_findings: By the identity of the question that they are shown with.
    """

    questions: list[Question] = field(default_factory=list)
    failed: list[ScenarioResult] = field(default_factory=list)
    pools: PoolUse = field(default_factory=PoolUse)
    pool_findings: dict[int, Finding] = field(default_factory=dict)


def collect(files: Iterable[Path], settings: Settings) -> Collected:
    """Reads all files.

    Raises:
        UnknownNameError: ``--set`` names a scenario that no file has.
        InputError: there are no scenarios at all.
    """
    collected = Collected()
    names: list[str] = []
    for path in files:
        try:
            file = load(path, Sources(settings.read, settings.variables, inside=settings.inside))
        except KvplanError as error:
            collected.failed.append(failed(str(path), Place(file=str(path)), error))
            continue
        scenarios, of_file = layered(file), pools(file)
        names += [each.name for each in scenarios]
        _add(collected, scenarios, of_file, settings)
    collected.pool_findings = {
        id(question): finding for question, finding in collected.pools.findings()
    }
    if names:
        check_names(settings.overrides, names)
    elif not collected.failed:
        # A check of nothing must not be green.
        raise InputError(
            "There are no scenarios in what was named.",
            hint="Write them under `scenarios:`; `kvplan init` makes a first one.",
        )
    return collected


def _add(
    collected: Collected, scenarios: Sequence[Layered], of_file: _Pools, settings: Settings
) -> None:
    found: list[Question] = []
    for each in scenarios:
        try:
            variants = tuple(expand(each))
        except KvplanError as error:
            collected.failed.append(failed(each.name, each.document.place(), error))
            continue
        for variant in variants:
            try:
                found.append(question(variant, of_file, settings.overrides))
            except KvplanError as error:
                place = variant.document.place()
                collected.failed.append(failed(variant.name, place, error))
    collected.questions += found
    for asked in found:
        collected.pools.add(asked, of_file)


def failed(name: str, place: Place, error: KvplanError) -> ScenarioResult:
    """The result of what could not be planned.

    Raises:
        InternalError: it is a bug, which is nobody's result.
    """
    if isinstance(error, InternalError) or error.exit_code not in _OUTCOMES:
        raise error
    return ScenarioResult(
        name=name,
        place=_place(error, place),
        outcome=_OUTCOMES[error.exit_code],
        problem=Problem(slug=error.slug, message=_message(error, place), hint=error.hint),
    )


def _message(error: KvplanError, place: Place) -> str:
    """The sentence; a place that is none in a file is part of it."""
    if error.location is None or _parsed(error.location, place) is not None:
        return error.message
    return str(error)


def _place(error: KvplanError, place: Place) -> Place:
    return (_parsed(error.location, place) if error.location else None) or place


def _parsed(location: str, place: Place) -> Place | None:
    """A place in a file from ``file:line:column``."""
    if location == place.file:
        return place
    file, _, column = location.rpartition(":")
    file, _, line = file.rpartition(":")
    if not (file and line.isdigit() and column.isdigit()):
        return None
    return Place(file=file, line=int(line), column=int(column))
