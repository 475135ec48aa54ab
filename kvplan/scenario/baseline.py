"""An earlier result against this one: fewer requests, or more money."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from kvplan.check_result import (
    CheckResult,
    Finding,
    ScenarioResult,
    TrafficResult,
    scenario_key,
    shared_names,
)
from kvplan.units import format_money

_ORDER = {"fits": 0, "does_not_fit": 1, "refused": 2}


@dataclass(frozen=True, slots=True)
class Baseline:
    """The earlier results that have a plan, by scenario; none where there is no baseline."""

    results: Mapping[str, ScenarioResult] = field(default_factory=dict)
    shared: frozenset[str] = frozenset()

    def before(self, new: ScenarioResult) -> ScenarioResult | None:
        """The same scenario in the baseline, if it is there."""
        return self.results.get(scenario_key(new, self.shared))


def baseline_for(earlier: CheckResult | None, names: Iterable[str]) -> Baseline:
    """What scenarios of these names are compared with."""
    if earlier is None:
        return Baseline()
    shared = shared_names(names, (each.name for each in earlier.scenarios))
    found = {
        scenario_key(each, shared): each for each in earlier.scenarios if each.verdict is not None
    }
    return Baseline(found, shared)


def fell_behind(old: ScenarioResult, new: ScenarioResult) -> Finding | None:
    """What became worse, as one finding; None where nothing did."""
    worse = list(_worse(old, new))
    if not worse:
        return None
    return Finding(
        code="KV203",
        rule="fewer-than-baseline",
        level="error",
        message=f"Worse than the baseline: {'; '.join(worse)}.",
        fix="Undo what changed, or make a new baseline with --format json.",
        place=new.place,
    )


def _traffic(old: TrafficResult | None, new: TrafficResult | None) -> Iterator[str]:
    if old is None or new is None:
        return
    before, now = old.plan.held.requests, new.plan.held.requests
    if now < before:
        yield f"requests of the traffic {before:,} → {now:,} ({now - before:+,})"
    needed, wanted = old.replicas_needed, new.replicas_needed
    if needed is not None and old.overload_risk is not None and (wanted is None or wanted > needed):
        yield f"replicas {needed:,} → {'no number is enough' if wanted is None else f'{wanted:,}'}"


def _worse(old: ScenarioResult, new: ScenarioResult) -> Iterator[str]:
    if old.verdict and new.verdict and _ORDER[new.verdict] > _ORDER[old.verdict]:
        yield f"verdict {old.verdict} → {new.verdict}"
    if old.requests is not None and (new.requests or 0) < old.requests:
        now = new.requests or 0
        yield f"requests {old.requests:,} → {now:,} ({now - old.requests:+,})"
    yield from _traffic(old.traffic, new.traffic)
    if old.cost is None or new.cost is None or old.cost.currency != new.cost.currency:
        return
    if new.cost.per_hour > old.cost.per_hour:
        hourly = format_money(new.cost.per_hour, new.cost.currency)
        yield f"{format_money(old.cost.per_hour)} → {hourly} an hour"
    before, now_each = old.cost.per_request, new.cost.per_request
    if before is not None and now_each is not None and now_each > before * (1 + 1e-9):
        yield f"{format_money(before)} → {format_money(now_each, new.cost.currency)} a request"
