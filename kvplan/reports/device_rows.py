"""The devices of a model that is spread over unlike ones, as rows."""

from __future__ import annotations

from collections import Counter

from kvplan.plan import DevicePart, Plan
from kvplan.units import format_bytes, format_count

HEADER = ("Layers", "Weights", "KV and states", "Left", "Compute")
_SEVERAL = " + "


def device_rows(plan: Plan) -> tuple[tuple[str, ...], ...]:
    """Name and figures of each device; empty where the ledger of one says it all."""
    busy = [part for part in plan.devices if part.weights_bytes or part.cache_bytes]
    if len(busy) < 2:
        return ()
    return tuple(map(_row, plan.devices))


def _row(part: DevicePart) -> tuple[str, ...]:
    left = "not stated" if part.left_bytes is None else format_bytes(part.left_bytes)
    sizes = map(format_bytes, (part.weights_bytes, part.cache_bytes))
    name = f"{part.name} {part.id}"
    return (name, f"{part.layers}", *sizes, left, format_bytes(part.compute_bytes))


def device_word(plan: Plan) -> str:
    """What a device of the plan is called: a box may have no GPU."""
    return "host" if plan.gpu.id.startswith("cpu:") and _SEVERAL not in plan.gpu.id else "GPU"


def fullest(plan: Plan) -> str:
    """The device whose ledger the plan shows, by name where there are several kinds."""
    if _SEVERAL not in plan.gpu.id or plan.kv is None:
        return plan.gpu.id
    shown = (plan.gpu.total_bytes, plan.kv.allocated_bytes)
    alike = (p for p in plan.devices if (p.total_bytes, p.cache_bytes) == shown)
    return next((part.id for part in alike), plan.gpu.id)


def hardware(plan: Plan) -> str:
    """``2 × L4-24GB``, or each device by name where they differ."""
    if _SEVERAL not in plan.gpu.id:
        return f"{format_count(plan.gpu.count)} × {plan.gpu.id}"
    counts = Counter(part.id for part in plan.devices)
    return _SEVERAL.join(
        f"{format_count(counts[name])} × {name}" if counts[name] > 1 else name
        for name in plan.gpu.id.split(_SEVERAL)
    )
