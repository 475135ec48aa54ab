"""SGLang and TensorRT-LLM: a pool's bytes from its tokens, and its tokens from the flags."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import kvplan
from engine_starts.notes import Ask, Compared, Notes, Report, Row, name_of, why_not
from kvplan.engines.sglang.pools import pool_bytes
from kvplan.engines.sglang.runtime_ranges import CUDA_CONTEXT_GIB
from kvplan.plan import Capacity

GIB = 2**30
# Two decimals of each of two halves, and of a figure that was put together of others.
_HALVES, _WHOLE, _DERIVED = 0.0105, 0.0055, 0.003
_PRINT = 0.005
_BUDGET = GIB
_LENGTH = 1024
_UNSTATED = "the card, what was free of it, or the share is not stated"


def report(engine: str, rows: tuple[Row, ...], notes: Notes) -> Report:
    """All rows of one engine."""
    by_id = {row["id"]: row for row in rows}
    pools = tuple(
        size for key, ask in notes.pools.items() for size in _pools(engine, by_id[key], ask)
    )
    starts = tuple(_start(engine, by_id[key], ask) for key, ask in notes.starts.items())
    return Report(
        rows=len(rows),
        pools=pools,
        starts=starts,
        causes=notes.causes,
        not_started={
            key: notes.not_started.get(key, _UNSTATED)
            for key in notes.pools
            if key not in notes.starts
        },
        left_out=dict(_left_out(rows, notes)),
    )


def _left_out(rows: tuple[Row, ...], notes: Notes) -> Iterator[tuple[str, str]]:
    for row in rows:
        key = row["id"]
        if key not in notes.pools and key not in notes.starts:
            yield key, notes.left_out.get(key) or why_not(row)


def _pools(engine: str, row: Row, ask: Ask) -> Iterator[Compared]:
    """Keys and values, and recurrent states where a log prints their slots.

    Where kvplan has no configuration of the model, the record's own bytes a token are taken: then
    only the pool's arithmetic is compared.
    """
    if "model" not in ask:
        yield _pool(engine, row, int(row["formula"]["bytes_per_token_per_rank"]))
        return
    other = row.get("other") or {}
    slots = other.get("mamba_slots") if "conv_state_gb" in other else None
    slots = slots if ask.get("states", True) else None
    plan = kvplan.size(
        ask["model"],
        "H100",
        engine=engine,
        tp=ask.get("tp", 1),
        context=_LENGTH,
        kv_budget=_BUDGET,
        kv_dtype=ask.get("kv_dtype", "auto"),
        engine_options={"max_mamba_cache_size": slots} if slots else {},
        offline=True,
        advice=False,
    )
    yield _pool(engine, row, int(plan.kv.bytes_per_token) if plan.kv else 0)
    states = [line.bytes for line in plan.ledger if line.name == "state_cache"]
    if slots and states:
        printed = other["conv_state_gb"] + other["ssm_state_gb"]
        yield Compared(
            id=row["id"],
            what=f"{name_of(row)}, {slots:,} slots of states",
            measured=printed,
            predicted=states[0] / GIB,
            exact=abs(states[0] / GIB - printed) <= _HALVES,
        )


def _pool(engine: str, row: Row, token_bytes: int) -> Compared:
    measured, rounding = _printed(row)
    held = row["kv_tokens"]
    size = pool_bytes(held, 1, token_bytes) if engine == "sglang" else held * token_bytes
    return Compared(
        id=row["id"],
        what=f"{name_of(row)}, {held:,} tokens",
        measured=measured,
        predicted=size / GIB,
        exact=abs(size / GIB - measured) <= rounding,
    )


def _printed(row: Row) -> tuple[float, float]:
    """The pool's size in GiB, and how far rounding may have moved it."""
    if row.get("k_size") is not None:
        return row["k_size"] + row["v_size"], _HALVES
    size = float(row["kv_size"])
    return size, _WHOLE if round(size, 2) == size else _DERIVED * size


def _start(engine: str, row: Row, ask: Ask) -> Compared:
    if "available" in ask:
        return _blocks(engine, row, ask)
    capacity = _capacity(engine, row, ask, kv_budget=None)
    gpu = ask.get("card") or ask.get("gpu") or f"{row[ask['free']]:g} GiB free"
    return Compared(
        id=row["id"],
        what=f"{name_of(row)}, {ask.get('tp', 1)} × {gpu}{_written(ask.get('options', {}))}",
        measured=row["kv_tokens"],
        predicted=capacity.tokens,
        low=capacity.tokens_low,
        high=capacity.tokens_high,
    )


def _blocks(engine: str, row: Row, ask: Ask) -> Compared:
    """Tokens of a share of what the log calls available, to a hundredth of a GiB."""
    printed = row["other"]["available_gib"]
    likely, low, high = (
        _capacity(engine, row, ask, kv_budget=int((printed + off) * GIB * ask["available"])).tokens
        for off in (0.0, -_PRINT, _PRINT)
    )
    return Compared(
        id=row["id"],
        what=f"{name_of(row)}, {ask['available']:g} of {printed:g} GiB available",
        measured=row["kv_tokens"],
        predicted=likely,
        low=low,
        high=high,
    )


def _capacity(engine: str, row: Row, ask: Ask, *, kv_budget: int | None) -> Capacity:
    version = ask.get("version")
    plan = kvplan.size(
        ask["model"],
        _gpu(row, ask),
        engine=f"{engine}=={version}" if version else engine,
        tp=ask.get("tp", 1),
        context=ask.get("context"),
        kv_budget=kv_budget,
        kv_dtype=ask.get("kv_dtype", "auto"),
        engine_options=dict(ask.get("options", {})),
        offline=True,
        advice=False,
    )
    if plan.capacity is None:
        raise AssertionError(f"{row['id']} is refused.")
    return plan.capacity


def _gpu(row: Row, ask: Ask) -> str:
    """The card; where it is not named, what was free and what CUDA had taken before."""
    if "free" in ask:
        return f"custom:{row[ask['free']] + CUDA_CONTEXT_GIB.value:.2f}GiB"
    return str(ask.get("gpu", "H100"))


def _written(options: Mapping[str, Any]) -> str:
    return "".join(f", {name} {value}" for name, value in options.items())
