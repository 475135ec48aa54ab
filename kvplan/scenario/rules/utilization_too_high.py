"""KV113: so much given to the engine's budget that what lies outside of it may not fit."""

from __future__ import annotations

from collections.abc import Iterator

from kvplan.plan import Plan
from kvplan.scenario.rules.base import Hit, Rule, Shown
from kvplan.units import format_bytes

_OPTIONS = ("gpu_memory_utilization", "mem_fraction_static", "free_gpu_memory_fraction")
# What is left of the card; of SGLang's, activations take a part.
_LEFT = ("outside_unused", "activation_room", "left_unused")
# Taken after the pool has been cut, wherever the engine accounts for them.
_LATE = ("cuda_graphs", "non_torch")


def _check(shown: Shown) -> Iterator[Hit]:
    plan = shown.plan
    if plan is None or plan.verdict == "refused":
        return
    given = next((name for name in _OPTIONS if shown.written(name)), None)
    if given is None:
        return
    written = shown.written(given) or given
    share = float(shown.question.options[written])
    left = sum(line.bytes for line in plan.ledger if line.name in _LEFT)
    may_grow = _may_grow(plan)
    if may_grow <= left:
        return
    rest = format_bytes(left) if left > 0 else "nothing"
    yield Hit(
        f"{given} {share:g} leaves {rest} of the card, and CUDA graphs, NCCL and the CUDA context"
        f" may take {format_bytes(may_grow)} more than planned.",
        f"Write {given}: {_lower(plan, share, may_grow - left)}.",
        ("options", written),
    )


def _may_grow(plan: Plan) -> int:
    """Bytes by which what is not the pool's may exceed the plan."""
    return sum(
        line.high - line.bytes
        for line in plan.ledger
        if line.name not in _LEFT and (line.section == "outside" or line.name.startswith(_LATE))
    )


def _lower(plan: Plan, share: float, missing: int) -> str:
    return f"{max(0.0, share - missing / plan.gpu.total_bytes - 0.005):.2f}"


RULE = Rule(
    "KV113",
    "utilization-too-high",
    "warning",
    "So high a utilization that graphs or NCCL may not fit.",
    _check,
)
