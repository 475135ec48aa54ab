"""What to change: each change that helps, tried for real, with its exact gain.

A change is tried by preparing the changed configuration, so nothing is advised that the
engine would refuse. Computed only when asked for.
"""

from __future__ import annotations

from dataclasses import replace

from kvplan.architectures import quantize
from kvplan.engines.base import Engine, Figures, Setup
from kvplan.errors import RefusedError, UsageError
from kvplan.plan import Advice, Gain, Parallelism, Plan
from kvplan.planning.size import MAX_RANKS, Load
from kvplan.planning.trials import Case, Trial, pairs_of, single_changes


def advise(engine: Engine, setup: Setup, load: Load, plan: Plan) -> tuple[Advice, ...]:
    """The changes that raise the requests held: those that reach the target first, cheap first.

    Advice is for a plan that falls short; one that fits gets none. Pairs of changes are tried
    only where no single one that keeps context and replicas reaches the target.
    """
    if plan.verdict != "does_not_fit" or plan.capacity is None:
        return ()
    case = Case(
        engine=engine,
        setup=setup,
        plan=plan,
        capacity=plan.capacity,
        context=plan.workload.context or 1,
        longest=load.context == "auto",
        target=load.concurrency or 1,
        asked=load.concurrency is not None,
    )
    trials = list(single_changes(case))
    tried = _try_all(case, trials)
    if not any(held >= case.target and not trial.last_resort for trial, held, _ in tried):
        tried += _try_all(case, list(pairs_of(trials)))
    return tuple(advice for *_, advice in sorted(tried, key=lambda entry: _rank(case, *entry[:2])))


def _rank(case: Case, trial: Trial, held: int) -> tuple[bool, int, bool]:
    """Among those that reach the target the gentler first, among the others the larger gain."""
    if held >= case.target:
        return (False, trial.gpus, trial.last_resort)
    return (True, -held, trial.last_resort)


def _try_all(case: Case, trials: list[Trial]) -> list[tuple[Trial, int, Advice]]:
    """Those that help: the trial, the requests it holds, and the words for it."""
    helping = []
    for trial in trials:
        figures = _try(case, trial)
        if figures is not None and figures.requests > case.capacity.requests:
            helping.append((trial, figures.requests, _advice(case, trial, figures)))
    return helping


def _try(case: Case, trial: Trial) -> Figures | None:
    """Capacity under the change, or None if the engine (or the format) would refuse it."""
    try:
        changed = _changed(case.setup, trial)
        if changed.parallelism.gpus > MAX_RANKS:
            return None
        prepared = case.engine.prepare(changed)
    except (RefusedError, UsageError):
        return None
    length = trial.context or case.context
    if case.longest and not trial.context:
        length = max(1, prepared.longest_context())
    figures = prepared.figures(length)
    return figures if figures.starts else None


def _changed(setup: Setup, trial: Trial) -> Setup:
    change = trial.change
    parallel = {name: n for name, n in change.items() if name in Parallelism.model_fields}
    model = setup.model
    if "weights" in change:
        model = quantize(model, change["weights"])
    return replace(
        setup,
        model=model,
        kv_dtype=change.get("kv_dtype", setup.kv_dtype),
        parallelism=setup.parallelism.model_copy(update=parallel),
        context=trial.context or setup.context,
        options={**setup.options, **trial.options},
    )


def _advice(case: Case, trial: Trial, figures: Figures) -> Advice:
    capacity, dp = case.capacity, case.setup.parallelism.dp
    reached = "enough" if figures.requests >= case.target else "not enough alone"
    return Advice(
        action=trial.action,
        change=dict(trial.change),
        gain=Gain(
            requests=figures.requests - capacity.requests,
            tokens=figures.tokens * int(trial.change.get("dp", dp)) - capacity.tokens * dp,
        ),
        cost=trial.cost,
        note=f"Holds {figures.requests:,} requests: {reached}.",
    )
