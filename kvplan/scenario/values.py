"""What a figure is for one plan, or why it can't be computed."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kvplan.engines.base import Prepared
from kvplan.errors import KvplanError
from kvplan.ledger import LedgerLine
from kvplan.plan import Capacity, Plan
from kvplan.scenario import figures, held
from kvplan.scenario.costs import cost_per_hour, cost_per_request
from kvplan.scenario.facts import Facts, Missing, at_once, concurrency_of, holds
from kvplan.scenario.kinds import Value


def value_of(facts: Facts, name: str) -> Value | Missing:
    """The value of a figure that `figures.kind_of` knows."""
    compute = _COMPUTED.get(name)
    if compute is not None:
        return compute(facts)
    path = figures.SHORT.get(name, name)
    if path.startswith(figures.TRAFFIC):
        return _of_traffic(facts, name)
    found = figures.of_plan(facts.plan, name)
    if found is None:
        return Missing(_why_missing(facts.plan, name))
    if not isinstance(found, Value):
        return Missing(f"{name} is no single value")
    return found


def _of_traffic(facts: Facts, name: str) -> Value | Missing:
    if facts.traffic is None:
        return Missing(_NO_TRAFFIC)
    found = figures.of_traffic(facts.traffic.plan, name)
    if not isinstance(found, Value):
        return Missing(f"the traffic's answer does not state {name}")
    return found


_NO_TRAFFIC = "it takes lengths, a trace or a rate in `workload`, and there is none"
_NO_DEMAND = "neither concurrency nor a rate or users are stated"


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
    most, asked = holds(facts), at_once(facts)
    if isinstance(most, Missing):
        return most
    if asked is None:
        return Missing(_NO_DEMAND)
    if most == 0:
        return Missing("not even one request fits")
    return (most - asked) / most


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


def _overload_risk(facts: Facts) -> float | Missing:
    if facts.traffic is None:
        return Missing(_NO_TRAFFIC)
    risk = facts.traffic.overload_risk
    return Missing(_NO_DEMAND) if risk is None else risk


def _replicas(facts: Facts) -> int | Missing:
    if facts.traffic is None:
        return Missing(_NO_TRAFFIC)
    if facts.traffic.overload_risk is None:
        return Missing(_NO_DEMAND)
    needed = facts.traffic.replicas_needed
    return Missing("no number of replicas is enough") if needed is None else needed


def _concurrency(facts: Facts) -> int | Missing:
    found = concurrency_of(facts)
    return Missing("no concurrency is stated") if found is None else found


def _asked_of_the_engine(
    facts: Facts, ask: Callable[[Prepared, Facts], int | str]
) -> int | Missing:
    """What the engine's own pools say of requests of the planned length."""
    capacity = _capacity(facts.plan)
    if isinstance(capacity, Missing):
        return capacity
    if facts.prepared is None:
        return Missing("the plan alone does not say")
    try:
        found = ask(facts.prepared(), facts)
    except KvplanError as error:
        return Missing(error.message.rstrip("."))
    return Missing(found) if isinstance(found, str) else found


def _with_prefixes(facts: Facts) -> int | Missing:
    """Whole requests held when the blocks of their common prefixes are held once."""
    return _asked_of_the_engine(facts, _prefixes_of)


def _with_sessions(facts: Facts) -> int | Missing:
    """Whole requests held beside the caches of idle sessions."""
    return _asked_of_the_engine(facts, _sessions_of)


def _sessions_kept(facts: Facts) -> int | Missing:
    """Idle sessions whose caches are kept beside the requests at once."""
    return _asked_of_the_engine(facts, _kept_of)


def _prefixes_of(prepared: Prepared, facts: Facts) -> int | str:
    return held.with_prefixes(prepared, facts.plan, facts.workload)


def _sessions_of(prepared: Prepared, facts: Facts) -> int | str:
    return held.with_sessions(prepared, facts.plan, facts.workload)


def _kept_of(prepared: Prepared, facts: Facts) -> int | str:
    return held.sessions_kept(prepared, facts.plan, facts.workload, concurrency_of(facts))


def _weights(facts: Facts) -> int | Missing:
    lines: list[LedgerLine] = [
        line for line in facts.plan.ledger if line.name.startswith("weights")
    ]
    return sum(line.bytes for line in lines) if lines else Missing("the plan has no ledger")


_COMPUTED: Mapping[str, Callable[[Facts], Value | Missing]] = {
    "headroom": headroom,
    "uncertainty": uncertainty,
    "requests_with_prefixes": _with_prefixes,
    "requests_with_sessions": _with_sessions,
    "sessions_kept": _sessions_kept,
    "overload_risk": _overload_risk,
    "replicas": _replicas,
    "concurrency": _concurrency,
    "cost_per_hour": cost_per_hour,
    "cost_per_request": cost_per_request,
    "weights_bytes": _weights,
}
