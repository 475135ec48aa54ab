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
from kvplan.planning.elsewhere import Elsewhere
from kvplan.planning.size import MAX_RANKS, Load
from kvplan.planning.trials import Case, Trial, pairs_of, single_changes

# A reader weighs this many; beyond those that are enough, so many that are not.
MOST, MOST_SHORT = 8, 3


def advise(
    engine: Engine, setup: Setup, load: Load, plan: Plan, elsewhere: Elsewhere | None = None
) -> tuple[Advice, ...]:
    """The changes that raise the requests held: those that reach the target first, cheap first.

    Advice is for a plan that falls short; one that fits gets none. Pairs of changes are tried
    where they can spare devices that a single change would need to reach the target.

    Args:
        engine: The engine of the plan.
        setup: What was planned.
        load: What was asked.
        plan: What came of it.
        elsewhere: Other GPUs and engines; None: they are not tried.
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
        elsewhere=elsewhere,
    )
    trials = list(single_changes(case))
    tried = _try_all(case, trials)
    enough = [t.gpus for t, held, _ in tried if held >= case.target and not _is_far(t)]
    pairs = [pair for pair in pairs_of(trials) if not enough or pair.gpus < min(enough)]
    tried += [pair for pair in _try_all(case, pairs) if _beats_halves(pair, tried)]
    return _best(case, tried)


_Tried = tuple[Trial, int, Advice]


def _best(case: Case, tried: list[_Tried]) -> tuple[Advice, ...]:
    """The first few that are enough; where there are few of them, the best of the others."""
    ordered = sorted(_last_rungs(case, tried), key=lambda entry: _rank(case, *entry[:2]))
    enough = [advice for _, held, advice in ordered if held >= case.target][:MOST]
    short = [advice for _, held, advice in ordered if held < case.target]
    return (*enough, *short[: MOST_SHORT if enough else MOST])


def _last_rungs(case: Case, tried: list[_Tried]) -> list[_Tried]:
    """Of steps of one ladder the first that is enough, or else the one that holds most."""
    best: dict[str, _Tried] = {}
    for entry in tried:
        trial, held, _ = entry
        if trial.ladder is not None:
            known = best.get(trial.ladder)
            if known is None or (known[1] < case.target and held > known[1]):
                best[trial.ladder] = entry
    return [entry for entry in tried if entry[0].ladder is None or entry in best.values()]


def _beats_halves(pair: _Tried, singles: list[_Tried]) -> bool:
    """Whether both changes of a pair count: it holds more than either alone."""
    trial, held, _ = pair
    return all(
        held > alone
        for single, alone, _ in singles
        if single.change and single.change.items() <= trial.change.items()
    )


def _is_far(trial: Trial) -> bool:
    """Whether it is more than a change of the deployment that there is."""
    return trial.last_resort or trial.moves


def _rank(case: Case, trial: Trial, held: int) -> tuple[bool, int, int]:
    """Among those that reach the target the gentler first, among the others the larger gain."""
    if held >= case.target:
        return (False, 2 * trial.last_resort + trial.moves, trial.gpus)
    return (True, -held, trial.gpus)


def _try_all(case: Case, trials: list[Trial]) -> list[_Tried]:
    """Those that help: the trial, the requests it holds, and the words for it."""
    helping: list[_Tried] = []
    climbed = set[str]()
    for trial in trials:
        if trial.ladder in climbed:
            continue
        if trial.shared:
            helping.append((trial, trial.held, _shared(case, trial)))
            continue
        tried = _try(case, trial)
        if tried is None:
            continue
        figures, context = tried
        if figures.requests > case.capacity.requests:
            helping.append((trial, figures.requests, _advice(case, trial, figures, context)))
            if trial.ladder and figures.requests >= case.target:
                climbed.add(trial.ladder)
    return helping


def _try(case: Case, trial: Trial) -> tuple[Figures, int] | None:
    """Capacity under the change and for which length, or None if the engine would refuse it."""
    try:
        changed = _changed(case.setup, trial, case.planned_context)
        if changed.parallelism.gpus > MAX_RANKS:
            return None
        prepared = (trial.engine or case.engine).prepare(changed)
    except (RefusedError, UsageError):
        return None
    # Where nothing fitted, the longest that fits is another with each change.
    context = prepared.longest_context() if case.nothing_fits else trial.context or case.context
    if context < 1:
        return None
    figures = prepared.figures(context)
    return (figures, context) if figures.starts else None


def _changed(setup: Setup, trial: Trial, context: int | None) -> Setup:
    change = trial.change
    parallel = {name: n for name, n in change.items() if name in Parallelism.model_fields}
    model = setup.model
    if "weights" in change:
        model = quantize(model, change["weights"])
    return replace(
        setup,
        model=model,
        gpu=trial.gpu or setup.gpu,
        # The other engine's newest release, as where none is pinned.
        version=None if trial.engine else setup.version,
        kv_dtype=change.get("kv_dtype", setup.kv_dtype),
        parallelism=setup.parallelism.model_copy(update=parallel),
        context=trial.context or context,
        options={**setup.options, **trial.options},
    )


def _shared(case: Case, trial: Trial) -> Advice:
    """No change of the configuration: what the requests would have to be."""
    return Advice(
        action=trial.action,
        change={},
        gain=Gain(requests=trial.held - case.capacity.requests, tokens=0),
        cost=trial.cost,
        note=f"Holds {_requests(trial.held)} then: enough.",
    )


def _advice(case: Case, trial: Trial, figures: Figures, context: int) -> Advice:
    capacity, dp = case.capacity, case.setup.parallelism.dp
    reached = "enough" if figures.requests >= case.target else "not enough alone"
    length = f" of {context:,} tokens" if case.nothing_fits else ""
    return Advice(
        action=trial.action,
        change={"context": context, **trial.change} if case.longest else dict(trial.change),
        gain=Gain(
            requests=figures.requests - capacity.requests,
            tokens=figures.tokens * int(trial.change.get("dp", dp)) - capacity.tokens * dp,
        ),
        cost=trial.cost,
        note=f"Holds {_requests(figures.requests)}{length}: {reached}.",
    )


def _requests(count: int) -> str:
    return "1 request" if count == 1 else f"{count:,} requests"
