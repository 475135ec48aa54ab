"""A comparison as labelled rows: one value an engine. All formats but JSON read these."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from kvplan.engine_comparison import Compared, EngineComparison, Spent
from kvplan.plan import Capacity, KvPart
from kvplan.reports.figures import counted
from kvplan.units import format_bytes, format_count

VERDICTS = {"fits": "fits", "does_not_fit": "does not fit", "refused": "refused"}
NOTHING = "-"


class Row(NamedTuple):
    """A figure of every engine; a title row has none."""

    label: str
    values: tuple[str, ...]


def rows(comparison: EngineComparison) -> tuple[Row, ...]:
    """All rows, titles included."""
    engines = comparison.engines
    return (
        Row("Verdict", tuple(VERDICTS[one.verdict] for one in engines)),
        _of_capacity("Whole requests", engines, lambda capacity: capacity.requests),
        _of_capacity("Tokens", engines, lambda capacity: capacity.tokens),
        _of_capacity("Longest context", engines, lambda capacity: capacity.max_context),
        Row("One GPU", ()),
        _of_spent("  weights", engines, lambda spent: spent.weights),
        _of_spent("  engine runtime", engines, lambda spent: spent.runtime),
        _of_spent("  KV cache", engines, lambda spent: spent.cache),
        _of_spent("  outside the budget", engines, lambda spent: spent.outside),
        _of_spent("  left over", engines, lambda spent: spent.unused),
        _of_spent("  total", engines, lambda spent: spent.total),
        Row("KV cache", ()),
        _of_kv("  of one request", engines, lambda kv: format_bytes(kv.bytes_per_request)),
        _of_kv("  of one more token", engines, lambda kv: format_bytes(kv.bytes_per_token)),
        _of_kv("  stored as", engines, lambda kv: kv.dtype),
    )


def headline(comparison: EngineComparison) -> str:
    """Which engine holds most, in one sentence."""
    length = comparison.workload.context
    load = "" if length is None else f" of {counted(length, 'token')}"
    best = next((one for one in comparison.engines if one.engine == comparison.best), None)
    if best is None or best.plan is None or best.plan.capacity is None:
        return f"No engine holds a request{load} on {comparison.gpu}."
    held = counted(best.plan.capacity.requests, "request")
    gpus = format_count(comparison.parallelism.gpus)
    wish = comparison.workload.concurrency
    asked = "" if wish is None else f"; you asked for {format_count(wish)}"
    return f"{best.engine} holds most: {held}{load} on {gpus} × {comparison.gpu}{asked}."


def names(comparison: EngineComparison) -> tuple[str, ...]:
    """A column's title an engine: name and release."""
    return tuple(f"{one.engine} {one.version}" for one in comparison.engines)


def settings(comparison: EngineComparison) -> tuple[str, ...]:
    """What each engine's share of memory is a share of."""
    return tuple(
        f"{one.engine}: {one.setting.name} {one.setting.value} is {one.setting.meaning}"
        for one in comparison.engines
        if one.setting is not None
    )


def differences(comparison: EngineComparison) -> tuple[tuple[str, str], ...]:
    """(engine, why) for each engine that has something to say."""
    return tuple((one.engine, " ".join(one.why)) for one in comparison.engines if one.why)


def _of_capacity(
    label: str, engines: tuple[Compared, ...], figure: Callable[[Capacity], int]
) -> Row:
    capacities = [_capacity(one) for one in engines]
    return Row(label, tuple(format_count(figure(c)) if c else NOTHING for c in capacities))


def _capacity(one: Compared) -> Capacity | None:
    return one.plan.capacity if one.plan and one.verdict != "refused" else None


def _of_spent(label: str, engines: tuple[Compared, ...], figure: Callable[[Spent], int]) -> Row:
    return Row(
        label,
        tuple(format_bytes(figure(one.spent)) if one.spent else NOTHING for one in engines),
    )


def _of_kv(label: str, engines: tuple[Compared, ...], figure: Callable[[KvPart], str]) -> Row:
    parts = [one.plan.kv if one.plan and one.verdict != "refused" else None for one in engines]
    return Row(label, tuple(figure(kv) if kv else NOTHING for kv in parts))
