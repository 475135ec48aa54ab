"""A comparison as CSV: one row an engine, plain numbers."""

from __future__ import annotations

import csv
from io import StringIO

from kvplan.engine_comparison import Compared, EngineComparison
from kvplan.reports.clean import inert_cell

COLUMNS = (
    "engine",
    "version",
    "verdict",
    "requests",
    "tokens",
    "max_context",
    "max_concurrency",
    "total_bytes",
    "weights_bytes",
    "runtime_bytes",
    "cache_bytes",
    "outside_bytes",
    "unused_bytes",
    "bytes_per_request",
    "bytes_per_token",
    "kv_dtype",
    "setting",
    "setting_value",
    "why",
)


def engines_csv(comparison: EngineComparison) -> str:
    """Rows of `COLUMNS`; empty cells where an engine refuses."""
    out = StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for one in comparison.engines:
        writer.writerow(
            (
                inert_cell(one.engine),
                inert_cell(one.version),
                one.verdict,
                *_capacity(one),
                *_spent(one),
                *_kv(one),
                one.setting.name if one.setting else "",
                inert_cell(str(one.setting.value)) if one.setting else "",
                inert_cell(" ".join(one.why)),
            )
        )
    return out.getvalue()


def _capacity(one: Compared) -> tuple[object, ...]:
    capacity = one.plan.capacity if one.plan and one.spent else None
    if capacity is None:
        return ("",) * 4
    return (
        capacity.requests,
        capacity.tokens,
        capacity.max_context,
        f"{capacity.max_concurrency:.4f}",
    )


def _spent(one: Compared) -> tuple[object, ...]:
    if one.spent is None:
        return ("",) * 6
    spent = one.spent
    return (
        spent.total,
        spent.weights,
        spent.runtime,
        spent.cache,
        spent.outside,
        spent.unused,
    )


def _kv(one: Compared) -> tuple[object, ...]:
    kv = one.plan.kv if one.plan and one.spent else None
    return (kv.bytes_per_request, kv.bytes_per_token, kv.dtype) if kv else ("",) * 3
