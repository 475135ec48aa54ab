"""What figures are computed from, and why one may not be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kvplan.check_result import TrafficResult
from kvplan.engines.base import Prepared
from kvplan.plan import Plan
from kvplan.scenario.schema import Prices
from kvplan.scenario.workload import Workload


@dataclass(frozen=True, slots=True)
class Missing:
    """A value that can't be computed, and why, as the end of a sentence."""

    why: str


@dataclass(frozen=True, slots=True)
class Facts:
    """What figures are computed from.

    Attributes:
        concurrency: Requests at once, where the scenario states them.
        traffic: What real traffic does to the plan, or None: requests are all alike.
        prepared: The engine's configuration, for what a plan does not state; None: not there.
    """

    plan: Plan
    workload: Workload
    prices: Prices | None
    concurrency: int | None = None
    traffic: TrafficResult | None = None
    prepared: Callable[[], Prepared] | None = None

    @property
    def currency(self) -> str | None:
        """Of the prices, where there are any."""
        return self.prices.currency if self.prices else None


def concurrency_of(facts: Facts) -> int | None:
    """Requests at once as the scenario states them, or a plan that is judged alone."""
    return facts.plan.workload.concurrency if facts.concurrency is None else facts.concurrency


def at_once(facts: Facts) -> float | None:
    """Requests at once: as stated, else those of the busiest hour on average."""
    stated = concurrency_of(facts)
    if stated is not None:
        return stated
    load = facts.traffic.plan.load if facts.traffic else None
    return None if load is None else load.peak_concurrent


def holds(facts: Facts) -> int | Missing:
    """Requests held: of traffic at its risk, else of the planned length."""
    if facts.traffic is not None:
        return facts.traffic.plan.held.requests
    if facts.plan.capacity is None:
        return Missing("the plan was refused and has no capacity")
    return facts.plan.capacity.requests
