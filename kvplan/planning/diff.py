"""Two results → what differs, scenario by scenario and figure by figure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kvplan.check_diff import Diff, DiffRow, ScenarioDiff, Unit, Way
from kvplan.check_result import (
    EXIT_CODES,
    CheckResult,
    ScenarioResult,
    TrafficResult,
    scenario_key,
    shared_names,
)
from kvplan.plan import Plan

_VERDICTS = ("fits", "does_not_fit", "refused")
_OUTCOMES: Mapping[str, int] = {str(outcome): code for outcome, code in EXIT_CODES.items()}
_NOTHING = 1e-7
_Value = int | float | str | None


@dataclass(frozen=True, slots=True)
class _Figure:
    """A value with its unit; ``good`` is the sign of a change for the better, 0 for neither."""

    value: _Value
    unit: Unit
    good: int = 0
    currency: str | None = None


def diff(old: CheckResult, new: CheckResult, *, names: tuple[str, str]) -> Diff:
    """Compares two results by the names of their scenarios.

    Where several scenarios have the same name, their files tell them apart.

    Args:
        old: The earlier one.
        new: The later one.
        names: What the two are called in reports.
    """
    shared = shared_names(*((each.name for each in side.scenarios) for side in (old, new)))
    before = {scenario_key(each, shared): each for each in old.scenarios}
    after = {scenario_key(each, shared): each for each in new.scenarios}
    if len(before) == len(after) == 1 and before.keys() != after.keys():
        # Two plans of different models: they were named to be compared.
        before = dict(zip(after, before.values(), strict=True))
    every = dict.fromkeys((*after, *before))
    found = [_scenario(name, before.get(name), after.get(name)) for name in every]
    return Diff(old=names[0], new=names[1], scenarios=tuple(sorted(found, key=_rank)))


def _rank(each: ScenarioDiff) -> tuple[bool, bool]:
    return not each.worse, each.status == "same"


def _scenario(name: str, old: ScenarioResult | None, new: ScenarioResult | None) -> ScenarioDiff:
    before = {} if old is None else dict(_figures(old))
    after = {} if new is None else dict(_figures(new))
    rows = tuple(
        _row(key, before.get(key), after.get(key))
        for key in dict.fromkeys((*after, *before))
        if _value(before.get(key)) != _value(after.get(key))
    )
    if old is None or new is None:
        return ScenarioDiff(name=name, status="added" if old is None else "removed", rows=rows)
    return ScenarioDiff(name=name, status="changed" if rows else "same", rows=rows)


def _value(figure: _Figure | None) -> _Value:
    return None if figure is None else figure.value


def _row(name: str, old: _Figure | None, new: _Figure | None) -> DiffRow:
    either = new or old
    assert either is not None  # noqa: S101 - the name came from one of them
    return DiffRow(
        name=name,
        unit=either.unit,
        old=_value(old),
        new=_value(new),
        way=_way(name, old, new),
        currency=either.currency,
    )


def _way(name: str, old: _Figure | None, new: _Figure | None) -> Way:
    if name == "outcome" and new is not None and new.value == "unreadable":
        return "worse"  # also where it was not there before: its scenarios are out of sight
    if old is None or new is None:
        return "other"
    before, after = _ordered(name, old.value), _ordered(name, new.value)
    if before is None or after is None or new.good == 0:
        return "other"
    return "better" if (after - before) * new.good > 0 else "worse"


def _ordered(name: str, value: _Value) -> float | None:
    if name == "verdict" and value in _VERDICTS:
        return -_VERDICTS.index(str(value))
    if name == "outcome":
        return -_OUTCOMES.get(str(value), 0)
    return value if isinstance(value, int | float) else None


def _figures(result: ScenarioResult) -> Iterator[tuple[str, _Figure]]:
    yield "outcome", _Figure(result.outcome, "text", 1)
    if result.problem is not None:
        yield "problem", _Figure(result.problem.message, "text")
    yield "verdict", _Figure(result.verdict, "text", 1)
    yield "requests", _Figure(result.requests, "count", 1)
    if result.traffic is not None:
        yield from _of_traffic(result.traffic)
    if result.cost is not None:
        currency = result.cost.currency
        yield "cost_per_hour", _Figure(result.cost.per_hour, "money", -1, currency)
        yield "cost_per_request", _Figure(result.cost.per_request, "money", -1, currency)
    if result.plan is not None:
        yield from _of_plan(result.plan)


def _of_traffic(traffic: TrafficResult) -> Iterator[tuple[str, _Figure]]:
    yield "held_requests", _Figure(traffic.plan.held.requests, "count", 1)
    risk = traffic.overload_risk
    yield "overload_risk", _Figure(None if risk is None else _rounded(risk), "share", -1)
    yield "replicas", _Figure(traffic.replicas_needed, "count", -1)
    yield "traffic", _Figure(traffic.plan.traffic, "text")
    yield "traffic.tokens_mean", _Figure(round(traffic.plan.total.mean), "tokens")
    yield "traffic.tokens_p99", _Figure(traffic.plan.total.p99, "tokens")
    if traffic.plan.load is not None:
        yield "traffic.peak_requests", _Figure(round(traffic.plan.load.peak_concurrent), "count")


def _of_plan(plan: Plan) -> Iterator[tuple[str, _Figure]]:
    yield "model.id", _Figure(plan.model.id, "text")
    yield "model.revision", _Figure(plan.model.revision, "text")
    yield "gpu.id", _Figure(plan.gpu.id, "text")
    yield "gpu.count", _Figure(plan.gpu.count, "count", -1)
    yield "engine", _Figure(f"{plan.engine.name} {plan.engine.version}", "text")
    yield "context", _Figure(plan.workload.context, "tokens")
    if plan.capacity is not None:
        yield "tokens", _Figure(plan.capacity.tokens, "tokens", 1)
        yield "tokens_low", _Figure(plan.capacity.tokens_low, "tokens", 1)
        yield "max_context", _Figure(plan.capacity.max_context, "tokens", 1)
    if plan.kv is not None:
        yield "kv.dtype", _Figure(plan.kv.dtype, "text")
        yield "kv.bytes_per_request", _Figure(plan.kv.bytes_per_request, "bytes", -1)
    for name, value in sorted(plan.engine.options.items()):
        yield f"options.{name}", _Figure(_word(value), "text")
    for line in plan.ledger:
        yield f"ledger.{line.name}", _Figure(line.bytes, "bytes")


def _rounded(share: float) -> float:
    """A share without what is next to nothing, and differs from machine to machine."""
    return float(f"{share:.6g}") if share >= _NOTHING else 0.0


def _word(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str)
