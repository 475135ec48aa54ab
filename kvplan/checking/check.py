"""``kvplan check``: questions planned, judged and linted."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from kvplan.check_result import (
    Assertion,
    CheckResult,
    Finding,
    Outcome,
    Place,
    ScenarioResult,
    worst_first,
)
from kvplan.checking.ask import Asked, ask
from kvplan.checking.collect import collect, failed
from kvplan.checking.facts import scenario_key
from kvplan.checking.locking import plan_for_lock
from kvplan.checking.notes import notes_of
from kvplan.checking.settings import Settings
from kvplan.plan import Plan
from kvplan.reports.headline import headline
from kvplan.scenario.baseline import Baseline, baseline_for, fell_behind
from kvplan.scenario.costs import cost_of
from kvplan.scenario.drift import drift
from kvplan.scenario.expectation import parse
from kvplan.scenario.facts import Facts
from kvplan.scenario.judge import judge
from kvplan.scenario.question import Question
from kvplan.scenario.rules.base import Shown
from kvplan.scenario.rules.lint import lint, reason_to_ignore


def check(files: Iterable[Path], settings: Settings) -> CheckResult:
    """Checks scenario files. What concerns one of them alone is a result, not an error.

    Raises:
        UnknownNameError: ``--set`` names a scenario that no file has.
    """
    collected = collect(files, settings)
    earlier = baseline_for(settings.baseline, (each.name for each in collected.questions))
    results = [
        _result(asked, settings, earlier, collected.pool_findings.get(id(asked.question)))
        for asked in ask(collected.questions, settings)
    ]
    return CheckResult(scenarios=worst_first((*collected.failed, *results)))


def _result(
    asked: Asked, settings: Settings, earlier: Baseline, of_pool: Finding | None
) -> ScenarioResult:
    question, plan = asked.question, asked.plan
    spec = None if asked.model is None else asked.model.spec
    linted = lint(Shown(question, plan, spec, asked.gpu, asked.traffic))
    pooled = () if of_pool is None else (of_pool,)
    if plan is None:
        assert asked.error is not None  # noqa: S101 - one of the two is there
        result = failed(question.name, question.place(), asked.error)
        return result.model_copy(update={"findings": (*linted, *pooled)})
    facts = Facts(
        plan,
        question.workload,
        question.prices,
        question.concurrency,
        asked.traffic,
        asked.prepared,
    )
    assertions = judge(facts, _expected(question), question.place())
    drifted = tuple(_drift(asked, settings))
    result = ScenarioResult(
        name=question.name,
        place=question.place(),
        outcome="passed",
        description=question.scenario.description,
        headline=headline(plan),
        verdict=plan.verdict,
        requests=plan.capacity.requests if plan.capacity else None,
        cost=cost_of(facts),
        assertions=assertions,
        findings=(*linted, *pooled, *drifted),
        notes=tuple(notes_of(question)),
        plan=plan,
        traffic=asked.traffic,
    )
    result = _with_baseline(result, earlier)
    outcome = _outcome(plan, assertions, result.findings, strict=settings.strict)
    return result.model_copy(update={"outcome": outcome})


def _expected(question: Question) -> list[tuple[str, Place]]:
    lines = question.scenario.expect or ()
    return [(text, question.place(("expect", at))) for at, text in enumerate(lines)]


def _drift(asked: Asked, settings: Settings) -> Iterable[Finding]:
    if settings.lock is None:
        return
    question = asked.question
    before = settings.lock.scenarios.get(scenario_key(question, settings.lock_folder))
    if before is None:
        yield _not_in_lock(question)
        return
    found = drift(question, before, plan_for_lock(asked, settings))
    if found is not None:
        yield found


def _not_in_lock(question: Question) -> Finding:
    place = question.place()
    return Finding(
        code="KV202",
        rule="not-in-lock",
        level="error",
        message="The scenario is not in the lock, so that nothing says whether it drifted.",
        fix="Run `kvplan lock` and commit kvplan.lock.",
        place=place,
        ignored=reason_to_ignore(question.variant.layered, "KV202", place),
    )


def _with_baseline(result: ScenarioResult, earlier: Baseline) -> ScenarioResult:
    before = earlier.before(result)
    worse = None if before is None else fell_behind(before, result)
    if worse is None:
        return result
    return result.model_copy(update={"findings": (*result.findings, worse)})


def _outcome(
    plan: Plan, assertions: Iterable[Assertion], findings: Iterable[Finding], *, strict: bool
) -> Outcome:
    judged = tuple(assertions)
    said_of_verdict = any(
        parse(each.text).name == "verdict" and each.status == "holds" for each in judged
    )
    if plan.verdict == "refused" and not said_of_verdict:
        return "refused"
    if any(each.status != "holds" for each in judged):
        return "failed"
    open_ones = [each for each in findings if each.ignored is None]
    failing = open_ones if strict else [each for each in open_ones if each.level == "error"]
    return "failed" if failing else "passed"
