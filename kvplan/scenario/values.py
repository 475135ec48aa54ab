"""What a figure is for one plan, or why it can't be computed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from kvplan.check_result import Cost
from kvplan.errors import UsageError
from kvplan.ledger import LedgerLine
from kvplan.plan import Capacity, Plan
from kvplan.scenario import figures
from kvplan.scenario.kinds import Value
from kvplan.scenario.schema import Prices, Workload
from kvplan.workloads.prefixes import share_prefix

_SECONDS_AN_HOUR = 3600


@dataclass(frozen=True, slots=True)
class Missing:
    """A value that can't be computed, and why, as the end of a sentence."""

    why: str


@dataclass(frozen=True, slots=True)
class Facts:
    """What figures are computed from."""

    plan: Plan
    workload: Workload
    prices: Prices | None

    @property
    def currency(self) -> str | None:
        """Of the prices, where there are any."""
        return self.prices.currency if self.prices else None


def value_of(facts: Facts, name: str) -> Value | Missing:
    """The value of a figure that `figures.kind_of` knows."""
    compute = _COMPUTED.get(name)
    if compute is not None:
        return compute(facts)
    found = figures.of_plan(facts.plan, name)
    if found is None:
        return Missing(_why_missing(facts.plan, name))
    if not isinstance(found, Value):
        return Missing(f"{name} is no single value")
    return found


def _why_missing(plan: Plan, name: str) -> str:
    path = figures.SHORT.get(name, name)
    if path.startswith("capacity.") and plan.capacity is None:
        return "the plan was refused and has no capacity"
    if path.startswith("kv.") and plan.kv is None:
        return "the plan was refused and has no cache"
    return f"the plan does not state {name}"


def _capacity(plan: Plan) -> Capacity | Missing:
    return plan.capacity or Missing("the plan was refused and has no capacity")


def headroom(facts: Facts) -> float | Missing:
    """Share of the requests held that the load leaves free; negative where it is too large."""
    capacity, asked = _capacity(facts.plan), facts.plan.workload.concurrency
    if isinstance(capacity, Missing):
        return capacity
    if asked is None:
        return Missing("no concurrency is stated")
    if capacity.requests == 0:
        return Missing("not even one request fits")
    return (capacity.requests - asked) / capacity.requests


def uncertainty(facts: Facts) -> float | Missing:
    """How far the plan's lower end lies below its point value, as a share of that."""
    capacity = _capacity(facts.plan)
    if isinstance(capacity, Missing):
        return capacity
    if capacity.tokens_low is None:
        return 0.0  # an exact plan has no interval
    if capacity.tokens == 0:
        return Missing("no token fits")
    return (capacity.tokens - capacity.tokens_low) / capacity.tokens


def _overload_risk(_facts: Facts) -> Missing:
    return Missing("it takes a distribution of lengths or a trace, and the workload is fixed")


def _with_prefixes(facts: Facts) -> int | Missing:
    """Whole requests held when the blocks of their common prefix are held once."""
    capacity = _capacity(facts.plan)
    if isinstance(capacity, Missing):
        return capacity
    if len(facts.workload.prefixes) != 1:
        return Missing("it is computed for exactly one prefix")
    if len(capacity.groups) != 1:
        return Missing("it is computed for models whose layers share one kind of block")
    prefix, group = facts.workload.prefixes[0], capacity.groups[0]
    try:
        shared = share_prefix(
            request_blocks=group.blocks_per_request,
            block_size=group.block_size,
            prefix_tokens=prefix.tokens,
        )
    except UsageError as error:
        return Missing(error.message.rstrip("."))
    # vLLM keeps one block for itself; for the others one block is within rounding.
    held = shared.requests_in(capacity.blocks - 1, distinct_prefixes=prefix.distinct)
    return min(held, _slots(facts.plan, held)) * facts.plan.parallelism.dp


def _slots(plan: Plan, otherwise: int) -> int:
    found = plan.engine.options.get("max_num_seqs")
    return found if isinstance(found, int) else otherwise


def _cost_per_hour(facts: Facts) -> float | Missing:
    if facts.prices is None:
        return Missing("no price is stated")
    return facts.prices.gpu_hour * facts.plan.gpu.count


def _cost_per_request(facts: Facts) -> float | Missing:
    """Price of a request while the deployment is as full as was asked for, or as it can be."""
    hourly, capacity = _cost_per_hour(facts), _capacity(facts.plan)
    if isinstance(hourly, Missing):
        return hourly
    if isinstance(capacity, Missing):
        return capacity
    seconds, asked = facts.workload.seconds_per_request, facts.plan.workload.concurrency
    if seconds is None:
        return Missing("workload.seconds_per_request is not stated")
    held = min(asked or capacity.requests, capacity.requests)
    if held == 0:
        return Missing("not even one request fits")
    return hourly * seconds / (_SECONDS_AN_HOUR * held)


def _weights(facts: Facts) -> int | Missing:
    lines: list[LedgerLine] = [
        line for line in facts.plan.ledger if line.name.startswith("weights")
    ]
    return sum(line.bytes for line in lines) if lines else Missing("the plan has no ledger")


_COMPUTED: Mapping[str, Callable[[Facts], Value | Missing]] = {
    "headroom": headroom,
    "uncertainty": uncertainty,
    "requests_with_prefixes": _with_prefixes,
    "overload_risk": _overload_risk,
    "cost_per_hour": _cost_per_hour,
    "cost_per_request": _cost_per_request,
    "weights_bytes": _weights,
}


def cost_of(facts: Facts) -> Cost | None:
    """What the deployment costs, where a price is stated."""
    hourly = _cost_per_hour(facts)
    if isinstance(hourly, Missing) or facts.prices is None:
        return None
    each = _cost_per_request(facts)
    return Cost(
        currency=facts.prices.currency,
        per_hour=hourly,
        per_request=None if isinstance(each, Missing) else each,
    )
