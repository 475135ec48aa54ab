"""What fits, as labelled rows: each figure says whether it counts a GPU, a replica or all."""

from __future__ import annotations

from typing import NamedTuple

from kvplan.plan import Capacity, KvPart, Plan
from kvplan.reports.device_rows import device_word
from kvplan.reports.figures import byte_range, count_range, counted
from kvplan.reports.headline import context_text, given_batch
from kvplan.units import format_bytes, format_count


class Figure(NamedTuple):
    """One figure: what it is, its value, its interval if it has one, and a remark."""

    label: str
    value: str
    interval: str
    remark: str


class Scope(NamedTuple):
    """Figures that count the same thing."""

    title: str
    figures: tuple[Figure, ...]


def capacity_scopes(plan: Plan) -> tuple[Scope, ...]:
    """Per GPU, per replica, and for the deployment; empty where nothing could be planned."""
    if plan.kv is None or plan.capacity is None:
        return ()
    replica = counted(plan.parallelism.tp * plan.parallelism.pp, device_word(plan))
    deployment = replica if plan.parallelism.dp == 1 else f"{plan.parallelism.dp} × {replica}"
    return (
        Scope(f"Per {device_word(plan)}", _per_gpu(plan, plan.kv, plan.capacity)),
        Scope(f"Per replica ({replica})", _per_replica(plan, plan.capacity)),
        Scope(f"Deployment ({deployment})", _deployment(plan, plan.capacity)),
    )


def _left(kv: KvPart) -> str:
    """What there was for the cache, where it is not what the cache took."""
    budget = format_bytes(abs(kv.budget_bytes))
    if kv.budget_bytes < 0:
        return f"{budget} are missing before it"
    return "" if format_bytes(kv.allocated_bytes) == budget else f"of {budget} left for it"


def _per_gpu(plan: Plan, kv: KvPart, capacity: Capacity) -> tuple[Figure, ...]:
    return (
        Figure(
            "KV cache allocated",
            format_bytes(kv.allocated_bytes),
            _pool_range(plan),
            _left(kv),
        ),
        Figure("KV of one more token", format_bytes(kv.bytes_per_token), "", _per_token(kv)),
        Figure(
            "KV of one request",
            format_bytes(kv.bytes_per_request),
            "",
            f"{context_text(plan)}, {format_count(kv.bytes_per_request)} bytes",
        ),
        Figure(
            "KV block",
            format_bytes(capacity.bytes_per_block),
            "",
            f"{counted(capacity.block_size, 'token')},"
            f" {format_count(capacity.bytes_per_block)} bytes",
        ),
    )


def _pool_range(plan: Plan) -> str:
    """The interval of what is allocated; empty where it is exact, as for a pool that was given."""
    pool = [line for line in plan.ledger if line.section == "pool"]
    return byte_range(pool[0].low, pool[0].high) if len(pool) == 1 else ""


def _per_token(kv: KvPart) -> str:
    whole = kv.bytes_per_token == int(kv.bytes_per_token)
    exact = format_count(kv.bytes_per_token) if whole else f"{kv.bytes_per_token:,.2f}"
    return f"{exact} bytes"


def _per_replica(plan: Plan, capacity: Capacity) -> tuple[Figure, ...]:
    # Only for vLLM are these figures promised to be the ones in its log.
    logged = "as the engine logs it" if plan.engine.name == "vllm" else ""
    tokens = count_range(capacity.tokens_low, capacity.tokens_high)
    batch = given_batch(plan)
    alone = "one request alone" if batch == 1 else f"a batch of {format_count(batch)}"
    return (
        Figure("KV blocks", format_count(capacity.blocks), "", logged),
        Figure("tokens", format_count(capacity.tokens), tokens, logged),
        Figure("max concurrency", f"{capacity.max_concurrency:,.2f}", "", logged),
        Figure("longest context", format_count(capacity.max_context), "", alone),
    )


def _deployment(plan: Plan, capacity: Capacity) -> tuple[Figure, ...]:
    asked = plan.workload.concurrency
    remark = f"of {context_text(plan)} at once"
    if asked is not None:
        remark += f"; asked for {format_count(asked)}"
    return (Figure("whole requests", format_count(capacity.requests), "", remark),)
