"""One question → a plan, or the error that stands in its place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache, partial

from kvplan import api
from kvplan.asked import Asked as Arguments
from kvplan.asked import asked_of, whole
from kvplan.check_result import TrafficResult
from kvplan.checking.facts import Facts, KnownModel, LiveFacts, LockedFacts
from kvplan.checking.places import at_its_value, at_key
from kvplan.checking.settings import Settings
from kvplan.checking.traffic import traffic_result, wants_traffic
from kvplan.engines.base import Prepared
from kvplan.errors import InternalError, KvplanError, NotModelledError
from kvplan.hardware import GpuSpec
from kvplan.models.spec import ModelSpec
from kvplan.plan import Plan
from kvplan.planning.size import MAX_RANKS, resolve_context
from kvplan.scenario.question import Question


@dataclass(frozen=True, slots=True)
class Asked:
    """A variant and what came of it: a plan, or an error.

    Attributes:
        draft: The model that drafts tokens, where one was read for it.
        prepared: The engine's configuration, worked out when it is first asked for.
        traffic: What requests that come and go do to the plan, where the scenario has such.
    """

    question: Question
    plan: Plan | None = None
    model: KnownModel | None = None
    gpu: GpuSpec | None = None
    draft: KnownModel | None = None
    prepared: Callable[[], Prepared] | None = None
    traffic: TrafficResult | None = None
    error: KvplanError | None = None


def ask(questions: Sequence[Question], settings: Settings) -> list[Asked]:
    """Plans every question, in order."""
    facts: Facts = LiveFacts(offline=settings.offline, located=settings.located)
    if settings.locked and settings.lock is not None:
        facts = LockedFacts(settings.lock, settings.lock_folder)
    one = partial(_ask, facts=facts, settings=settings)
    if settings.jobs == 1 or len(questions) < 2:
        return list(map(one, questions))
    with ThreadPoolExecutor(max_workers=settings.jobs) as pool:
        return list(pool.map(one, questions))


def _ask(question: Question, *, facts: Facts, settings: Settings) -> Asked:
    asked = Asked(question)
    try:
        asked = replace(asked, gpu=at_key(lambda: facts.gpu(question), question, "gpu"))
        try:
            asked = replace(asked, model=at_key(lambda: facts.model(question), question, "model"))
        except NotModelledError:
            if isinstance(facts, LockedFacts):
                raise
        return _planned(asked, facts, settings)
    except InternalError:
        raise
    except KvplanError as error:
        return replace(asked, error=at_its_value(error, question))


def _planned(asked: Asked, facts: Facts, settings: Settings) -> Asked:
    question, known = asked.question, asked.model
    arguments = _arguments(question, asked.gpu, known, facts.engine(question))
    draft = facts.draft(question, arguments)
    if draft is not None:
        arguments = replace(arguments, draft=draft.spec)
    if question.gpus_per_node is not None:
        whole("gpus_per_node", question.gpus_per_node, MAX_RANKS)
    plan, resolved = api.planned(
        # A model that is not modelled is named, so that the plan can say what it is.
        facts.reference(question) if known is None else known.spec,
        arguments,
        gpus_per_node=question.gpus_per_node,
        offline=settings.offline or settings.locked,
        advice=False,
    )
    asked = replace(asked, plan=plan, draft=draft)
    if resolved is None or plan.verdict == "refused":
        return asked
    prepared = lru_cache(maxsize=1)(partial(arguments.engine.planner().prepare, resolved.setup))
    asked = replace(asked, prepared=prepared)
    if not wants_traffic(question):
        return asked
    setup = resolved.setup
    longest = resolve_context(setup.model, setup.context)
    if question.context == "auto":
        longest = max(1, prepared().longest_context())
    question = replace(question, trace=question.trace and settings.located(question.trace))
    return replace(asked, traffic=traffic_result(question, prepared(), setup, longest))


def _arguments(
    question: Question, gpu: GpuSpec | None, model: KnownModel | None, engine: str
) -> Arguments:
    # Where lengths differ, not all requests at once are as long as the longest.
    concurrency = None if question.workload.says_lengths else question.concurrency
    return asked_of(
        question.gpu if gpu is None else gpu,
        engine=engine,
        sizes={name: question.sizes.get(name, 1) for name in ("tp", "pp", "dp", "dcp")},
        load=(question.context, concurrency),
        words={
            "weights": _weights(question, None if model is None else model.spec),
            "kv_dtype": question.kv_dtype,
            "dtype": question.dtype,
        },
        kv_budget=question.kv_budget,
        options=question.options,
        images=(0, None, None),
    )


def _weights(question: Question, model: ModelSpec | None) -> str:
    """The format, with what the command's --quantization makes of a plain checkpoint."""
    plain = model is not None and model.quantization is None
    if question.weights == "auto" and question.online is not None and plain:
        return question.online
    return question.weights
