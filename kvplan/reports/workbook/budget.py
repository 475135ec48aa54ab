"""What is left for the cache, as a formula of the ledger: taken from the line of the rest."""

from __future__ import annotations

from dataclasses import dataclass

from kvplan.formula import compile_formula
from kvplan.ledger import LedgerLine
from kvplan.plan import Plan
from kvplan.plan_book import PlanBook

_POOL_FORMULA = "blocks * bytes_per_block"


@dataclass(frozen=True, slots=True)
class LiveBudget:
    """A budget that a sheet can work out.

    Attributes:
        rest: The line of what is less than a block; without the cache it is the budget.
        cache: What that line calls the cache.
    """

    rest: LedgerLine
    cache: str


def live_budget(plans: PlanBook) -> LiveBudget | None:
    """The budget's formula, where it gives the plan's own figures; else None."""
    plan, kv, capacity = plans.plan, plans.plan.kv, plans.plan.capacity
    pools = [line for line in plan.ledger if line.section == "pool"]
    if kv is None or capacity is None or len(pools) != 1 or pools[0].formula != _POOL_FORMULA:
        return None
    name = input_name(pools[0])
    rest = _rest(plan, name)
    if rest is None or kv.budget_low is None or kv.budget_high is None:
        return None
    inputs = {**rest.inputs, name: 0}
    budget = compile_formula(rest.formula).evaluate_bytes(inputs)
    block = capacity.bytes_per_block
    if (budget, budget // block) != (kv.budget_bytes, capacity.blocks):
        return None
    pool = plans.rule.pools[0] if plans.rule and len(plans.rule.pools) == 1 else None
    ends = (max(0, kv.budget_low // block), max(0, kv.budget_high // block))
    if pool is not None and (pool.low, pool.high) != ends:
        return None
    return LiveBudget(rest, name)


def input_name(line: LedgerLine) -> str:
    """What other lines' formulas call a line."""
    return line.name.replace(".", "_")


def _rest(plan: Plan, cache: str) -> LedgerLine | None:
    for line in plan.ledger:
        if line.section == "free" and cache in line.inputs:
            return line
    return None
