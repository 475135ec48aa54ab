"""What to change: each single change that helps, tried for real, with its exact gain.

A change is tried by preparing the changed configuration, so nothing is advised that the
engine would refuse. Computed only when asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from kvplan.architectures import quantize
from kvplan.engines.base import Engine, Figures, Setup
from kvplan.errors import RefusedError, UsageError
from kvplan.plan import Advice, Gain, Parallelism, Plan
from kvplan.planning.size import Load, resolve_context

MAX_TP = 16


@dataclass(frozen=True, slots=True)
class Trial:
    """A change to try.

    Attributes:
        change: Arguments of `kvplan.size` by name.
        options: Engine options to set.
        context: A shorter length to plan for, or None for the one that was asked.
    """

    action: str
    change: Mapping[str, Any]
    cost: str
    note: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    context: int | None = None


def advise(engine: Engine, setup: Setup, load: Load, plan: Plan) -> tuple[Advice, ...]:
    """The changes that raise the requests held, the ones that reach the target first.

    Advice is for a plan that falls short; one that fits gets none.
    """
    if plan.verdict != "does_not_fit" or plan.capacity is None:
        return ()
    context = resolve_context(setup.model, load.context)
    given = []
    for trial in _trials(engine, setup, load, plan, context):
        figures = _try(engine, setup, trial, context)
        if figures is None:
            continue
        gain = Gain(
            requests=figures.requests - plan.capacity.requests,
            tokens=figures.tokens * _replicas(trial, setup)
            - plan.capacity.tokens * setup.parallelism.dp,
        )
        if gain.requests > 0:
            given.append((figures.requests, _advice(trial, gain, figures, load)))
    target = load.concurrency or 1
    given.sort(key=lambda entry: (entry[0] < target, -min(entry[0], target)))
    return tuple(advice for _, advice in given)


def _replicas(trial: Trial, setup: Setup) -> int:
    dp: int = trial.change.get("dp", setup.parallelism.dp)
    return dp


def _advice(trial: Trial, gain: Gain, figures: Figures, load: Load) -> Advice:
    enough = load.concurrency is None or figures.requests >= load.concurrency
    held = f"Holds {figures.requests:,} requests"
    reach = f"{held}: enough" if enough else f"{held}: not enough alone"
    return Advice(
        action=trial.action,
        change=dict(trial.change),
        gain=gain,
        cost=trial.cost,
        note=f"{reach}. {trial.note}".strip(),
    )


def _try(engine: Engine, setup: Setup, trial: Trial, context: int) -> Figures | None:
    """Capacity under the change, or None if the engine (or the format) would refuse it."""
    length = trial.context or context
    try:
        changed = _changed(setup, trial)
        figures = engine.prepare(replace(changed, context=length)).figures(length)
    except (RefusedError, UsageError):
        return None
    return figures if figures.max_context >= length else None


def _changed(setup: Setup, trial: Trial) -> Setup:
    change = trial.change
    parallel = {k: v for k, v in change.items() if k in Parallelism.model_fields}
    model = setup.model
    if "weights" in change:
        model = quantize(model, change["weights"])
    return replace(
        setup,
        model=model,
        kv_dtype=change.get("kv_dtype", setup.kv_dtype),
        parallelism=setup.parallelism.model_copy(update=parallel),
        options={**setup.options, **trial.options},
    )


def _trials(engine: Engine, setup: Setup, load: Load, plan: Plan, context: int) -> Iterator[Trial]:
    yield from _more_seqs(setup, load, plan)
    yield from _formats(setup)
    yield from _more_gpus(setup, load, plan)
    yield from _utilization(setup, plan)
    yield from _shorter(engine, setup, load, context)


def _more_seqs(setup: Setup, load: Load, plan: Plan) -> Iterator[Trial]:
    binding = any(reason.code == "max_num_seqs" for reason in plan.reasons)
    if binding and load.concurrency is not None:
        seqs = -(-load.concurrency // setup.parallelism.dp)
        yield Trial(
            action=f"Admit more requests at once: max_num_seqs={seqs:,}",
            change={"engine_options": {"max_num_seqs": seqs}},
            options={"max_num_seqs": seqs},
            cost="A larger sampling buffer, which the gain accounts for.",
        )


def _formats(setup: Setup) -> Iterator[Trial]:
    if setup.kv_dtype == "auto":
        yield Trial(
            action="Store the KV cache in FP8",
            change={"kv_dtype": "fp8"},
            cost="Some accuracy on long contexts; check on your own prompts.",
        )
    if setup.kv_budget is None and setup.model.quantization is None:
        yield Trial(
            action="Quantize the weights to FP8",
            change={"weights": "fp8"},
            cost="A little accuracy; a quantized checkpoint has to exist or be made.",
        )
        yield Trial(
            action="Quantize the weights to 4 bits (AWQ)",
            change={"weights": "awq"},
            cost="More accuracy than FP8 loses; a quantized checkpoint has to exist or be made.",
        )


def _more_gpus(setup: Setup, load: Load, plan: Plan) -> Iterator[Trial]:
    parallel = setup.parallelism
    tp = parallel.tp * 2
    if setup.kv_budget is None and tp <= MAX_TP:
        yield Trial(
            action=f"Split over {tp} GPUs instead of {parallel.tp} (tensor parallel)",
            change={"tp": tp},
            cost=f"{parallel.gpus} more GPUs, and more traffic between them.",
        )
    held = plan.capacity.requests // parallel.dp if plan.capacity else 0
    if held and load.concurrency:
        dp = -(-load.concurrency // held)
        added = (dp - parallel.dp) * parallel.tp * parallel.pp
        yield Trial(
            action=f"Run {dp} replicas instead of {parallel.dp} (data parallel)",
            change={"dp": dp},
            cost=f"{added} more GPUs.",
        )


def _utilization(setup: Setup, plan: Plan) -> Iterator[Trial]:
    used = plan.engine.options.get("gpu_memory_utilization")
    given = setup.kv_budget is not None or "kv_cache_memory_bytes" in setup.options
    if given or not isinstance(used, float) or used >= 0.95:
        return
    yield Trial(
        action="Raise gpu_memory_utilization to 0.95",
        change={"engine_options": {"gpu_memory_utilization": 0.95}},
        options={"gpu_memory_utilization": 0.95},
        cost="Less room for what the budget does not count; risky where others use the GPU.",
    )


def _shorter(engine: Engine, setup: Setup, load: Load, context: int) -> Iterator[Trial]:
    """The longest context at which the asked concurrency is held."""
    target = load.concurrency or 1
    try:
        prepared = engine.prepare(setup)
    except RefusedError:
        return
    low, high = 0, context - 1
    while low < high:
        middle = (low + high + 1) // 2
        if prepared.figures(middle).requests >= target:
            low = middle
        else:
            high = middle - 1
    if low:
        yield Trial(
            action=f"Cap requests at {low:,} tokens",
            change={"context": low},
            context=low,
            cost="Longer requests are refused.",
        )
