"""``kvplan lock``: the facts of every scenario, as they are now."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from kvplan.check_result import Place, ScenarioResult
from kvplan.checking.ask import Asked, ask
from kvplan.checking.collect import collect, failed
from kvplan.checking.facts import KnownModel, lock_key, scenario_key
from kvplan.checking.settings import Settings
from kvplan.errors import NotModelledError
from kvplan.scenario.lock import (
    Lock,
    LockedGpu,
    LockedModel,
    LockedPlan,
    file_hash,
    locked_gpu,
    locked_plan,
)


def make_lock(files: Iterable[Path], settings: Settings) -> tuple[Lock, tuple[ScenarioResult, ...]]:
    """The lock of scenario files, and what could not be locked.

    A plan that does not fit is locked as well: that it does not is a fact too. Of what is not
    modelled there is no plan to lock.
    """
    collected = collect(files, settings)
    models: dict[str, LockedModel] = {}
    gpus: dict[str, LockedGpu] = {}
    plans: dict[str, LockedPlan] = {}
    for asked in ask(collected.questions, settings):
        if asked.plan is None or asked.model is None:
            collected.failed.append(_unlocked(asked))
            continue
        question = asked.question
        for name, known in _models(asked):
            models[lock_key(name, settings.lock_folder)] = LockedModel(
                revision=known.spec.revision, config_sha256=known.config_sha256, spec=known.spec
            )
        if asked.gpu is not None:
            gpus[question.gpu] = locked_gpu(asked.gpu)
        plans[scenario_key(question, settings.lock_folder)] = plan_for_lock(asked, settings)
    return Lock(models=models, gpus=gpus, scenarios=plans), tuple(collected.failed)


def plan_for_lock(asked: Asked, settings: Settings) -> LockedPlan:
    """What was planned, as the lock keeps it and as it is compared with the lock."""
    assert asked.plan is not None  # noqa: S101 - only plans are locked
    question, draft = asked.question, asked.draft
    trace = question.trace
    return locked_plan(
        question,
        asked.plan,
        model=lock_key(question.model, settings.lock_folder),
        config_sha256="" if asked.model is None else asked.model.config_sha256,
        draft_sha256=None if draft is None else draft.config_sha256,
        trace_sha256=None if trace is None else file_hash(settings.located(trace)),
        traffic=asked.traffic,
    )


def _models(asked: Asked) -> Iterator[tuple[str, KnownModel]]:
    """The model, and the one that drafts for it."""
    question = asked.question
    if asked.model is not None:
        yield question.model, asked.model
    if asked.draft is not None:
        yield question.options["speculative_config"]["model"], asked.draft


def _unlocked(asked: Asked) -> ScenarioResult:
    place: Place = asked.question.place()
    error = asked.error
    if error is None:
        reasons = asked.plan.reasons if asked.plan else ()
        message = reasons[0].message if reasons else "The model is not modelled."
        error = NotModelledError(message, hint="There is nothing to lock.")
    return failed(asked.question.name, place, error)
