"""One question → a plan, or the error that stands in its place."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from kvplan import api
from kvplan.checking.facts import Facts, KnownModel, LiveFacts, LockedFacts
from kvplan.checking.settings import Settings
from kvplan.errors import InternalError, KvplanError, NotModelledError
from kvplan.hardware import GpuSpec
from kvplan.models.spec import ModelSpec
from kvplan.plan import Plan
from kvplan.scenario.question import Question


@dataclass(frozen=True, slots=True)
class Asked:
    """A variant and what came of it: a plan, or an error."""

    question: Question
    plan: Plan | None = None
    model: KnownModel | None = None
    gpu: GpuSpec | None = None
    error: KvplanError | None = None


def ask(questions: Sequence[Question], settings: Settings) -> list[Asked]:
    """Plans every question, in order."""
    facts: Facts = LiveFacts(offline=settings.offline)
    if settings.locked and settings.lock is not None:
        facts = LockedFacts(settings.lock, settings.lock_folder)
    offline = settings.offline or settings.locked

    def one(question: Question) -> Asked:
        return _ask(question, facts, offline=offline)

    if settings.jobs == 1 or len(questions) < 2:
        return list(map(one, questions))
    with ThreadPoolExecutor(max_workers=settings.jobs) as pool:
        return list(pool.map(one, questions))


def _ask(question: Question, facts: Facts, *, offline: bool) -> Asked:
    model: KnownModel | None = None
    gpu: GpuSpec | None = None
    try:
        _check_workload(question)
        gpu = facts.gpu(question)
        try:
            model = facts.model(question)
        except NotModelledError:
            if isinstance(facts, LockedFacts):
                raise
        plan = _size(question, model, gpu, facts.engine(question), offline=offline)
    except InternalError:
        raise
    except KvplanError as error:
        return Asked(question, model=model, gpu=gpu, error=error)
    return Asked(question, plan, model, gpu)


def _check_workload(question: Question) -> None:
    if question.workload.trace is not None:
        raise NotModelledError(
            f"workload.trace ({question.workload.trace}) is not planned yet: scenarios take fixed"
            " lengths, a concurrency, prefixes and sessions.",
            hint="Write workload: {input_tokens: ..., output_tokens: ..., concurrency: ...}.",
            location=str(question.place(("workload", "trace"))),
        )


def _size(
    question: Question,
    model: KnownModel | None,
    gpu: GpuSpec | None,
    engine: str,
    *,
    offline: bool,
) -> Plan:
    sizes = question.sizes
    return api.size(
        # A model that is not modelled is named, so that the plan can say what it is.
        question.model if model is None else model.spec,
        question.gpu if gpu is None else gpu,
        engine=engine,
        tp=sizes.get("tp", 1),
        pp=sizes.get("pp", 1),
        dp=sizes.get("dp", 1),
        dcp=sizes.get("dcp", 1),
        context=question.context,
        concurrency=question.concurrency,
        weights=_weights(question, None if model is None else model.spec),
        kv_dtype=question.kv_dtype,
        dtype=question.dtype,
        kv_budget=question.kv_budget,
        engine_options=question.options,
        gpus_per_node=question.gpus_per_node,
        offline=offline,
        advice=False,
    )


def _weights(question: Question, model: ModelSpec | None) -> str:
    """The format, with what the command's --quantization makes of a plain checkpoint."""
    plain = model is not None and model.quantization is None
    if question.weights == "auto" and question.online is not None and plain:
        return question.online
    return question.weights
