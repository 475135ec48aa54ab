"""A rank's memory with its pools cut: the ledger that a plan shows. All lines sum to the device."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from kvplan.engines.sglang.memory import SOURCE, STATIC, RankMemory
from kvplan.engines.sglang.sizes import Sizes, solve
from kvplan.engines.weight_drafts import identifier
from kvplan.ledger import Draft, LedgerLine

if TYPE_CHECKING:
    from kvplan.engines.sglang.deployment import SglangDeployment

_POOLS = "SGLang 0.5.23, sglang/srt/mem_cache/memory_pool.py"
_PAGE = "(tokens + page_size) * token_bytes"


def full_ledger(deployment: SglangDeployment) -> tuple[LedgerLine, ...]:
    """All lines of the fullest rank."""
    rank = _rank(deployment)
    pool = tuple(_pool(deployment))
    lines = (
        *rank.budget,
        *pool,
        _rest(rank, pool, deployment),
        *rank.before,
        deployment.table,
        *rank.after,
        slack(deployment),
    )
    return tuple(draft.line() for draft in lines)


def given_ledger(deployment: SglangDeployment) -> tuple[LedgerLine, ...]:
    """The ledger of pools whose bytes were given: the pools, and what is beside them."""
    pool = tuple(_pool(deployment))
    spent = _values(pool)
    rest = Draft(
        "budget_rest",
        "free",
        " - ".join(("kv_budget", *spent)) + " + beyond_static",
        {"kv_budget": deployment.available, **spent, **_beyond(deployment)},
        source="kv_budget as given; the pools' additional pages come on top of it",
        confidence="exact",
    )
    return tuple(draft.line() for draft in (*pool, rest))


def _rank(deployment: SglangDeployment) -> RankMemory:
    ranks = deployment.ranks or ()
    return ranks[deployment.fullest]


def _pool(deployment: SglangDeployment) -> Iterator[Draft]:
    found, stage = deployment.sizes, deployment.fullest
    low = found if deployment.low is None else solve(deployment.sizing, deployment.low)
    high = found if deployment.high is None else solve(deployment.sizing, deployment.high)
    sizing, rows = deployment.sizing, deployment.sizing.stages[stage]
    tokens = (found.tokens, *(deployment.token_range or (found.tokens, found.tokens)))
    if rows.full_bytes:
        name = "kv_cache.full" if rows.window.token_bytes else "kv_cache"
        yield _tokens(name, deployment, tokens, rows.full_bytes)
    if rows.window.token_bytes:
        windows = (found.window_tokens, low.window_tokens, high.window_tokens)
        yield _tokens("kv_cache.window", deployment, windows, rows.window.token_bytes)
    if sizing.draft_token_bytes and stage == len(sizing.stages) - 1:
        yield _tokens("draft_kv_cache", deployment, tokens, sizing.draft_token_bytes)
    if rows.slot_bytes:
        yield _states(found, low, high, rows.slot_bytes)


def _tokens(
    name: str, deployment: SglangDeployment, tokens: tuple[int, int, int], token_bytes: int
) -> Draft:
    found, low, high = tokens
    return Draft(
        name,
        "pool",
        _PAGE,
        {"tokens": found, "page_size": deployment.frame.page, "token_bytes": token_bytes},
        source=_POOLS,
        confidence="exact" if low == found == high else "calibrated",
        low={"tokens": min(low, found)},
        high={"tokens": max(high, found)},
    )


def _states(found: Sizes, low: Sizes, high: Sizes, slot_bytes: int) -> Draft:
    return Draft(
        "state_cache",
        "pool",
        "(slots + drafted_slots + 1) * slot_bytes",
        {"slots": found.slots, "drafted_slots": found.drafted_slots, "slot_bytes": slot_bytes},
        source=f"{_POOLS} MambaPool",
        confidence="exact" if low.slots == found.slots == high.slots else "calibrated",
        low={"slots": min(low.slots, found.slots)},
        high={"slots": max(high.slots, found.slots)},
    )


def _beyond(deployment: SglangDeployment) -> dict[str, int]:
    """Bytes of the pools that the static share does not pay: their additional pages."""
    sizing, found = deployment.sizing, deployment.sizes
    rows, page = sizing.stages[deployment.fullest], deployment.frame.page
    last = deployment.fullest == len(sizing.stages) - 1
    pages = page * (rows.full_bytes + rows.window.token_bytes)
    pages += page * sizing.draft_token_bytes if last else 0
    slots = 0 if sizing.rules.state_padding else rows.slot_bytes
    # A draft whose layers are larger than the model's was paid for less than it takes.
    spent = deployment.available - sum(draft.value() for draft in _pool(deployment))
    return {"beyond_static": max(pages + slots, -spent) if found.tokens else pages + slots}


def _rest(rank: RankMemory, pool: tuple[Draft, ...], deployment: SglangDeployment) -> Draft:
    spent = _values((*rank.budget, *pool))
    return Draft(
        "budget_rest",
        "free",
        " - ".join((STATIC, *spent)) + " + beyond_static",
        {**_share(rank), **spent, **_beyond(deployment)},
        source=f"{SOURCE}: what is less than a page of tokens",
        confidence="derived",
    )


def slack(deployment: SglangDeployment) -> Draft:
    """What the dynamic share leaves for activations."""
    rank = _rank(deployment)
    spent = _values((*rank.before, deployment.table, *rank.after))
    return Draft(
        "activation_room",
        "outside",
        " - ".join((f"total_bytes - {STATIC}", *spent, "beyond_static")),
        {
            "total_bytes": rank.device.total,
            **_share(rank),
            **spent,
            **_beyond(deployment),
        },
        source="what mem_fraction_static leaves for prefill activations and late allocations",
        confidence="derived",
    )


def _share(rank: RankMemory) -> dict[str, int | float]:
    return {"free_bytes": rank.free, "mem_fraction_static": rank.fraction}


def _values(drafts: Iterable[Draft]) -> dict[str, int]:
    return {identifier(draft.name): draft.value() for draft in drafts}
