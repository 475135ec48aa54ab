"""A rank's memory with its pool cut: the ledger that a plan shows. All lines sum to the device."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kvplan.engines.vllm.memory import BUDGET, SOURCE, RankMemory
from kvplan.engines.vllm.weight_lines import identifier
from kvplan.ledger import Draft, LedgerLine


@dataclass(frozen=True, slots=True)
class Cut:
    """The pool as it is cut.

    Attributes:
        blocks, low, high: Whole blocks, at the likely value and the ends of the budget's range.
    """

    blocks: int
    bytes_per_block: int
    low: int
    high: int


def full_ledger(memory: RankMemory, cut: Cut) -> tuple[LedgerLine, ...]:
    """All lines of a rank whose pool is what the budget leaves."""
    pool = _pool(cut)
    spent = _values(memory.budget)
    beside = _values(memory.outside)
    share = {
        "total_bytes": memory.device.total,
        "gpu_memory_utilization": memory.utilization,
    }
    rest = Draft(
        "budget_rest",
        "free",
        _minus(BUDGET, ("kv_cache", *spent)),
        {**share, "kv_cache": pool.value(), **spent},
        source=f"{SOURCE}: what is less than one block",
        confidence="derived",
    )
    unused = Draft(
        "outside_unused",
        "outside",
        _minus(f"total_bytes - {BUDGET}", beside),
        {**share, **beside},
        source="what the utilization leaves to other processes and late allocations",
        confidence="derived",
    )
    return _lines((*memory.budget, pool, rest, *memory.outside, unused))


def fixed_pool_ledger(memory: RankMemory, cut: Cut) -> tuple[LedgerLine, ...]:
    """The ledger under kv_cache_memory_bytes: no utilization, the pool is as large as was said."""
    pool = _pool(cut)
    spent = _values((*memory.budget, pool, *memory.outside))
    rest = Draft(
        "unused",
        "free",
        _minus("total_bytes", spent),
        {"total_bytes": memory.device.total, **spent},
        source="kv_cache_memory_bytes bypasses the utilization",
        confidence="derived",
    )
    return _lines((*memory.budget, pool, *memory.outside, rest))


def given_ledger(budget: int, cut: Cut) -> tuple[LedgerLine, ...]:
    """The ledger of a pool whose bytes were given: the blocks and what is less than one."""
    pool = _pool(cut)
    rest = Draft(
        "budget_rest",
        "free",
        "kv_budget - kv_cache",
        {"kv_budget": budget, "kv_cache": pool.value()},
        source="kv_budget as given",
        confidence="exact",
    )
    return _lines((pool, rest))


def _pool(cut: Cut) -> Draft:
    exact = cut.low == cut.high
    return Draft(
        "kv_cache",
        "pool",
        "blocks * bytes_per_block",
        {"blocks": cut.blocks, "bytes_per_block": cut.bytes_per_block},
        source="vLLM 0.33.0, vllm/v1/core/kv_cache_planning.py",
        confidence="exact" if exact else "calibrated",
        low={"blocks": cut.low},
        high={"blocks": cut.high},
    )


def _values(drafts: Iterable[Draft]) -> dict[str, int]:
    return {identifier(draft.name): draft.value() for draft in drafts}


def _minus(first: str, names: Iterable[str] | Mapping[str, int]) -> str:
    return " - ".join((first, *names))


def _lines(drafts: Iterable[Draft]) -> tuple[LedgerLine, ...]:
    return tuple(draft.line() for draft in drafts)
