"""``kvplan lock``: the facts of every scenario, as they are now."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from kvplan.check_result import Place, ScenarioResult
from kvplan.checking.ask import Asked, ask
from kvplan.checking.collect import collect, failed
from kvplan.checking.facts import lock_key, scenario_key
from kvplan.checking.settings import Settings
from kvplan.errors import NotModelledError
from kvplan.scenario.lock import (
    Lock,
    LockedGpu,
    LockedModel,
    LockedPlan,
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
        key = lock_key(question.model, settings.lock_folder)
        models[key] = LockedModel(
            revision=asked.model.spec.revision,
            config_sha256=asked.model.config_sha256,
            spec=asked.model.spec,
        )
        if asked.gpu is not None:
            gpus[question.gpu] = locked_gpu(asked.gpu)
        plans[scenario_key(question, settings.lock_folder)] = locked_plan(
            question, asked.plan, model=key, config_sha256=asked.model.config_sha256
        )
    return Lock(models=models, gpus=gpus, scenarios=plans), tuple(collected.failed)


def _unlocked(asked: Asked) -> ScenarioResult:
    place: Place = asked.question.place()
    error = asked.error
    if error is None:
        reasons = asked.plan.reasons if asked.plan else ()
        message = reasons[0].message if reasons else "The model is not modelled."
        error = NotModelledError(message, hint="There is nothing to lock.")
    return failed(asked.question.name, place, error)
