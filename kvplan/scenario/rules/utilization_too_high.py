"""KV113: so much given to the engine's budget that what lies outside of it may not fit."""

from __future__ import annotations

from collections.abc import Iterator

from kvplan.plan import Plan
from kvplan.scenario.rules.base import Hit, Rule, Shown
from kvplan.units import format_bytes

_OPTIONS = ("gpu_memory_utilization", "mem_fraction_static", "free_gpu_memory_fraction")
_LEFT = "outside_unused"
# Taken after the pool has been cut, wherever the engine accounts for them.
_LATE = ("cuda_graphs", "non_torch")


def _check(shown: Shown) -> Iterator[Hit]:
    plan = shown.plan
    if plan is None or plan.verdict == "refused":
        return
    given = next((name for name in _OPTIONS if name in shown.question.options), None)
    if given is None:
        return
    left = sum(line.bytes for line in plan.ledger if line.name == _LEFT)
    may_grow = _may_grow(plan)
    if may_grow <= left:
        return
    yield Hit(
        f"{given} {shown.question.options[given]} leaves {format_bytes(left)} of the card, and CUDA"
        f" graphs, NCCL and the CUDA context may take {format_bytes(may_grow)} more than planned.",
        f"Write {given}: {_lower(plan, shown.question.options[given], may_grow - left)}.",
        ("options", given),
    )


def _may_grow(plan: Plan) -> int:
    """Bytes by which what is not the pool's may exceed the plan."""
    return sum(
        line.high - line.bytes
        for line in plan.ledger
        if line.name != _LEFT and (line.section == "outside" or line.name.startswith(_LATE))
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
