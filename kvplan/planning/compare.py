"""Plans of several engines → a comparison: what each subtracts, and why they differ.

Everything is read from the plans: no engine is known here but by the name of its options.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kvplan.engine_comparison import Compared, EngineComparison, MemorySetting, Spent
from kvplan.errors import KvplanError
from kvplan.ledger import LedgerLine, total
from kvplan.plan import Parallelism, Plan, Workload
from kvplan.units import format_bytes, format_count

# What the option that limits an engine's memory is a share of. Sources: vLLM 0.33.0,
# vllm/v1/worker/utils.py request_memory; SGLang 0.5.23, server_args.py and model_runner.py;
# TensorRT-LLM, _torch/pyexecutor/_util.py.
MEANINGS: Mapping[str, str] = {
    "kv_cache_memory_bytes": "the cache itself",
    "gpu_memory_utilization": "of the whole GPU, weights included",
    "mem_fraction_static": "of what was free before loading, weights included",
    "free_gpu_memory_fraction": "of what weights and the measured peak leave",
}
# Options that limit how many requests run at once.
LIMITS = (
    "max_num_seqs",
    "max_running_requests",
    "max_batch_size",
    "num_parallel",
    "n_seq_max",
    "batch_size",
)
# Smaller differences, as a share of the card or of a request, are left unsaid.
_SMALLEST = 0.01
_PARTS = {
    "weights": "weights",
    "runtime": "engine runtime",
    "outside": "outside the budget",
}
# A line is named where it is at least this share of a difference.
_LARGEST = 0.5
# What a request takes beside its cache is told from this share of the cache on.
_BESIDE = 0.25
# A limit that was not set but found, as the largest batch that fits.
_FOUND = ("batch_size",)
# The reason of an engine that left weights to the host.
_OFFLOADED = "layers_on_host"


@dataclass(frozen=True, slots=True)
class Asked:
    """One engine and what came of asking it: a plan, or the error that says why there is none."""

    engine: str
    version: str
    outcome: Plan | KvplanError


def compare(
    asked: Sequence[Asked], *, model: str, gpu: str, parallelism: Parallelism, workload: Workload
) -> EngineComparison:
    """Puts the plans side by side.

    Args:
        asked: The engines in order.
        model: What was planned for, as the user names it.
        gpu: The device's id.
        parallelism: As asked.
        workload: As asked.
    """
    plans = [one.outcome for one in asked if isinstance(one.outcome, Plan)]
    best = _best(plans)
    return EngineComparison(
        model=model,
        gpu=gpu,
        parallelism=parallelism,
        workload=workload,
        best=best.engine.name if best else None,
        engines=tuple(_compared(one, best) for one in asked),
    )


def spent(plan: Plan) -> Spent | None:
    """Where the bytes of one GPU go, by the plan's ledger; None where there is none."""
    if not plan.ledger:
        return None
    weights = sum(line.bytes for line in plan.ledger if _is_weights(line))
    return Spent(
        total=total(plan.ledger),
        weights=weights,
        runtime=total(plan.ledger, "budget") - weights,
        cache=total(plan.ledger, "pool"),
        outside=total(plan.ledger, "outside"),
        unused=total(plan.ledger, "free"),
    )


def _best(plans: Sequence[Plan]) -> Plan | None:
    """The plan that holds most requests, then most tokens; the first of equals."""
    holding = [plan for plan in plans if _held(plan) > 0]
    return max(holding, key=lambda plan: (_held(plan), _tokens(plan)), default=None)


def _held(plan: Plan) -> int:
    if plan.verdict == "refused" or plan.capacity is None:
        return 0
    return plan.capacity.requests


def _tokens(plan: Plan) -> int:
    return plan.capacity.tokens if plan.capacity else 0


def _compared(one: Asked, best: Plan | None) -> Compared:
    plan = one.outcome
    if isinstance(plan, KvplanError):
        return Compared(
            engine=one.engine,
            version=one.version,
            verdict="refused",
            spent=None,
            setting=None,
            why=(plan.message,),
            plan=None,
        )
    return Compared(
        engine=one.engine,
        version=plan.engine.version,
        verdict=plan.verdict,
        spent=None if plan.verdict == "refused" else spent(plan),
        setting=None if plan.verdict == "refused" else _setting(plan),
        why=tuple(_why(plan, best)),
        plan=plan,
    )


def _setting(plan: Plan) -> MemorySetting | None:
    options = plan.engine.options
    for name, meaning in MEANINGS.items():
        if options.get(name) is not None:
            return MemorySetting(name=name, value=options[name], meaning=meaning)
    return None


def _why(plan: Plan, best: Plan | None) -> Iterator[str]:
    if plan.verdict == "refused":
        yield plan.reasons[0].message if plan.reasons else "The engine refuses."
        return
    if plan.verdict == "does_not_fit" and plan.reasons:
        yield plan.reasons[0].message
    yield from _on_the_host(plan)
    if best is None or plan is best:
        return
    yield from _limit(plan)
    yield from _request(plan, best)
    yield from _beside(plan)
    yield from _subtracted(plan, best)


def _on_the_host(plan: Plan) -> Iterator[str]:
    """Layers or experts that the GPUs need not hold, which the table does not show."""
    yield from (reason.message for reason in plan.reasons if reason.code == _OFFLOADED)


def _limit(plan: Plan) -> Iterator[str]:
    """The engine's own limit on requests, where it binds before memory does."""
    for name in LIMITS:
        if _binds(plan, name):
            limit = format_count(plan.engine.options[name])
            yield f"{name} {limit} is the most it runs at once."
            return


def _binds(plan: Plan, name: str) -> bool:
    limit = plan.engine.options.get(name)
    if not isinstance(limit, int) or not limit or (name in _FOUND and name in plan.engine.assumed):
        return False
    return limit * plan.parallelism.dp == _held(plan)


def _request(plan: Plan, best: Plan) -> Iterator[str]:
    if plan.kv is None or best.kv is None or not best.kv.bytes_per_request:
        return
    ours, theirs = plan.kv.bytes_per_request, best.kv.bytes_per_request
    if abs(ours - theirs) >= _SMALLEST * theirs:
        yield (
            f"A request takes {format_bytes(ours)} of {plan.kv.dtype}, "
            f"{_times(ours, theirs)} {best.engine.name}'s."
        )


def _beside(plan: Plan) -> Iterator[str]:
    """What a request takes besides its cache, where memory is left that no request can use."""
    ours, held, kv = spent(plan), _held(plan) // plan.parallelism.dp, plan.kv
    if ours is None or kv is None or not held or ours.unused < _SMALLEST * ours.total:
        return
    # A load that was asked for has its part of it in the engine's runtime already.
    if plan.workload.concurrency is not None or any(_binds(plan, name) for name in LIMITS):
        return
    beside = (ours.cache + ours.unused) // held - kv.bytes_per_request
    if beside >= _BESIDE * kv.bytes_per_request:
        yield f"Each request takes about {format_bytes(beside)} beside its cache."


def _times(ours: int, theirs: int) -> str:
    ratio = ours / theirs
    return f"{ratio:.1f} times" if ratio >= 10 else f"{ratio:.2f} times"


def _subtracted(plan: Plan, best: Plan) -> Iterator[str]:
    """Parts of the card that differ, the largest first."""
    ours, theirs = spent(plan), spent(best)
    if ours is None or theirs is None:
        return
    differences = {part: getattr(ours, part) - getattr(theirs, part) for part in _PARTS}
    for part, more in sorted(differences.items(), key=lambda item: -abs(item[1])):
        if abs(more) >= _SMALLEST * ours.total:
            words, than = _PARTS[part], "more" if more > 0 else "less"
            yield (
                f"{words[0].upper()}{words[1:]}: {format_bytes(abs(more))} {than} than "
                f"{best.engine.name}{_mostly(plan, best, part, more)}."
            )


def _mostly(plan: Plan, best: Plan, part: str, more: int) -> str:
    """The ledger's line that makes the difference, where one does."""
    if part == "weights":
        return _left_to_host(best, more)
    if more <= 0:
        return ""
    lines = [line for line in plan.ledger if _is_of(line, part)]
    largest = max(lines, key=lambda line: line.bytes, default=None)
    if largest is None or largest.bytes < _LARGEST * more:
        return ""
    return f" ({largest.name} is {format_bytes(largest.bytes)})"


def _left_to_host(best: Plan, more: int) -> str:
    """Weights that the other engine keeps in the host's memory, such as the embedding."""
    host = best.devices[-1] if len(best.devices) > 1 else None
    if host is None or host.weights_bytes < _LARGEST * more or more <= 0:
        return ""
    return f", which leaves {format_bytes(host.weights_bytes)} in the host's memory"


def _is_of(line: LedgerLine, part: str) -> bool:
    if part == "runtime":
        return line.section == "budget" and not _is_weights(line)
    return line.section == part


def _is_weights(line: LedgerLine) -> bool:
    return line.section == "budget" and "weights" in line.name.partition(".")[0]
