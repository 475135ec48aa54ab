"""One GPU's memory as parts of a bar: what a picture of the ledger shows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

from kvplan.ledger import LedgerLine, total
from kvplan.plan import Plan
from kvplan.reports.figures import counted
from kvplan.reports.headline import limited_by_requests, requests_per_replica

Kind = Literal["weights", "runtime", "kv", "kv_spare", "outside", "free", "missing"]


class Part(NamedTuple):
    """A stretch of the bar.

    Attributes:
        kind: ``kv`` is what the requests asked for hold, or all of the cache.
        bytes: Never negative.
    """

    kind: Kind
    label: str
    bytes: int


def memory_parts(plan: Plan) -> tuple[Part, ...]:
    """The parts in the order of the bar, empty ones left out; ``missing`` comes last."""
    weights = _sum(line for line in plan.ledger if line.name.split(".")[0] == "weights")
    outside = [line for line in plan.ledger if line.section == "outside"]
    unused = _sum(line for line in outside if line.name.endswith("unused"))
    parts = (
        Part("weights", "weights", weights),
        Part("runtime", "engine runtime", total(plan.ledger, "budget") - weights),
        *_cache_parts(plan),
        Part("outside", "outside the budget", _sum(outside) - unused),
        Part("free", "not used by the engine", max(0, unused) + max(0, total(plan.ledger, "free"))),
        Part("missing", *_missing(plan)),
    )
    return tuple(part for part in parts if part.bytes > 0)


def _sum(lines: Iterable[LedgerLine]) -> int:
    return sum(line.bytes for line in lines)


def _cache_parts(plan: Plan) -> tuple[Part, ...]:
    pool = total(plan.ledger, "pool")
    if plan.kv is None or plan.capacity is None:
        return (Part("kv", "KV cache", pool),)
    asked = requests_per_replica(plan)
    held = plan.capacity.requests // plan.parallelism.dp
    # llama.cpp has a cache for so many sequences, whatever more the memory would hold.
    held = min(held, plan.engine.options.get("n_seq_max", held))
    if asked is None or plan.verdict != "fits":
        holds = f", holds {counted(held, 'request')}" if held else ""
        return (Part("kv", f"KV cache{holds}", pool),)
    used = min(asked * plan.kv.bytes_per_request, pool)
    return (
        Part("kv", f"KV cache of {counted(asked, 'request')}", used),
        Part("kv_spare", "KV cache to spare", pool - used),
    )


def _missing(plan: Plan) -> tuple[str, int]:
    """What the GPU lacks: for what is already on it, or else for the requests asked for."""
    overdrawn = [line for line in plan.ledger if line.bytes < 0]
    overfull = -_sum(overdrawn)
    if overdrawn and all(line.section == "outside" for line in overdrawn):
        return "missing outside the budget", overfull
    if overfull > 0 or plan.verdict != "does_not_fit" or plan.kv is None or plan.capacity is None:
        return "missing before any KV cache", overfull
    asked = max(1, requests_per_replica(plan) or 1)
    if limited_by_requests(plan):
        return "", 0
    more = asked - plan.capacity.requests // plan.parallelism.dp
    short = asked * plan.kv.bytes_per_request - total(plan.ledger, "pool")
    return f"missing: KV cache of {counted(more, 'more request')}", short


def cells(sizes: tuple[int, ...], width: int) -> tuple[int, ...]:
    """Cuts ``width`` cells in proportion to ``sizes``; nothing that is there vanishes.

    >>> cells((50, 49, 1), 10), cells((0, 5), 4), cells((1, 10**9), 4)
    ((5, 4, 1), (0, 4), (1, 3))
    """
    whole = sum(sizes)
    if whole <= 0:
        return tuple(0 for _ in sizes)
    least = [1 if size > 0 else 0 for size in sizes]
    spare = width - sum(least)
    counts = [
        low + size * spare // whole if spare > 0 else low
        for low, size in zip(least, sizes, strict=True)
    ]
    by_need = sorted(
        (index for index, size in enumerate(sizes) if size > 0),
        key=lambda index: counts[index] * whole - sizes[index] * width,
    )
    for index in by_need[: max(0, width - sum(counts))]:
        counts[index] += 1
    return tuple(counts)
