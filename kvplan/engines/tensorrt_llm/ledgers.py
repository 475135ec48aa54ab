"""A rank's memory with its pool cut: the ledger that a plan shows. All lines sum to the device."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from kvplan.engines.tensorrt_llm import blocks
from kvplan.engines.weight_drafts import identifier
from kvplan.ledger import Draft, LedgerLine

if TYPE_CHECKING:
    from kvplan.engines.tensorrt_llm.deployment import TensorRtDeployment

_POOLS = "tensorrt_llm/_torch/pyexecutor/resource_manager.py KVCacheManager"


def full_ledger(deployment: TensorRtDeployment) -> tuple[LedgerLine, ...]:
    """All lines of the fullest rank; the run that was measured is over, its memory free again."""
    rank = (deployment.ranks or ())[deployment.fullest]
    pool = tuple(_pool(deployment))
    spent = _values((*rank.spent, *pool))
    unused = Draft(
        "left_unused",
        "outside" if rank.device.total >= sum(spent.values()) else "free",
        " - ".join(("total_bytes", *spent)),
        {"total_bytes": rank.device.total, **spent},
        source="what free_gpu_memory_fraction leaves to later allocations",
        confidence="derived",
    )
    return tuple(draft.line() for draft in (*rank.spent, *pool, unused))


def given_ledger(deployment: TensorRtDeployment) -> tuple[LedgerLine, ...]:
    """The ledger of a pool whose bytes were given: the blocks and what is less than one.

    Where the last block is rounded up it lies beyond those bytes, and nothing is left.
    """
    pool = tuple(_pool(deployment))
    budget = deployment.shares[deployment.fullest].estimated
    spent = _values(pool)
    rest = Draft(
        "budget_rest",
        "free",
        f"max(0, {' - '.join(('kv_budget', *spent))})",
        {"kv_budget": budget, **spent},
        source="kv_budget as given",
        confidence="exact",
    )
    return tuple(draft.line() for draft in (*pool, rest))


def _pool(deployment: TensorRtDeployment) -> Iterator[Draft]:
    sizing, found = deployment.sizing, deployment.blocks
    low = found if deployment.low is None else blocks.solve(sizing, deployment.low)
    high = found if deployment.high is None else blocks.solve(sizing, deployment.high)
    for pool in sizing.stages[deployment.fullest]:
        window = pool.window
        yield Draft(
            "kv_cache" if len(found) == 1 else f"kv_cache.window_{window}",
            "pool",
            "blocks * tokens_per_block * token_bytes",
            {
                "blocks": found[window],
                "tokens_per_block": sizing.block,
                "token_bytes": pool.token_bytes,
            },
            source=_POOLS,
            confidence="exact" if low == high else "calibrated",
            low={"blocks": min(low[window], found[window])},
            high={"blocks": max(high[window], found[window])},
        )


def _values(drafts: Iterable[Draft]) -> dict[str, int]:
    return {identifier(draft.name): draft.value() for draft in drafts}
