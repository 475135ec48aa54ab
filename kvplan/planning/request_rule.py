"""Requests as arithmetic of their length, found from an engine's answers and checked against them.

A workbook can't run an engine's algorithm. Most of what engines do with one request is plain,
though: each group of layers takes a unit for every so many tokens, up to a limit. That form is
looked for here; where the engine's answers are not of it, there is no rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from kvplan.engines.base import Engine, Prepared, ReplicaPools, Setup
from kvplan.errors import KvplanError, RefusedError
from kvplan.plan import Capacity, Plan
from kvplan.plan_book import GroupRule, MovingInput, PoolRule, RequestRule, Rung
from kvplan.planning.size import Load, plan_from

SHORTEST_RUNG = 1024
# Lengths around the powers of two, where blocks, windows and chunks begin and end.
_AROUND = (-1, 0, 1)


@dataclass(frozen=True)
class Asked:
    """A configuration that can be planned for other lengths.

    Attributes:
        plan: For the length that was asked for.
        longest: Tokens of the longest request that is looked at.
    """

    engine: Engine
    setup: Setup
    plan: Plan
    longest: int

    @cached_property
    def context(self) -> int:
        """Tokens a request that were planned for."""
        return self.plan.workload.context or 1

    @cached_property
    def prepared(self) -> Prepared:
        """The configuration as it was planned."""
        return self.engine.prepare(replace(self.setup, context=self.context))

    @cached_property
    def pools(self) -> ReplicaPools | None:
        """What requests of a replica share; None where nothing is shared."""
        try:
            return self.prepared.pools(self.context)
        except RefusedError:
            return None

    def at(self, context: int) -> Plan | None:
        """The plan for another length; None where the engine refuses it."""
        if context == self.context:
            return self.plan
        setup = replace(self.setup, context=context)
        try:
            return plan_from(self.engine.prepare(setup), setup, Load(context=context))
        except KvplanError:
            return None


def find_rule(asked: Asked) -> RequestRule | None:
    """The rule, with the lengths for which it holds; None where none was found."""
    capacity = asked.plan.capacity
    if capacity is None:
        return None
    rules = (_by_blocks(asked, capacity), _by_pools(asked))
    checked = [found for rule in rules if rule and (found := _checked(asked, rule))]
    # A few lengths are no rule: the table of lengths is of more use then.
    wide = [rule for rule in checked if rule.highest >= 2 * rule.lowest or asked.longest == 1]
    return max(wide, key=lambda rule: rule.highest - rule.lowest, default=None)


def rungs(asked: Asked, rule: RequestRule | None) -> tuple[Rung, ...]:
    """The engine's own answers for lengths from the shortest to the longest, doubling."""
    lengths = {asked.context, asked.longest, *_doubling(SHORTEST_RUNG, asked.longest)}
    return tuple(
        _rung(plan, length, rule) for length in sorted(lengths) if (plan := asked.at(length))
    )


def _rung(plan: Plan, length: int, rule: RequestRule | None) -> Rung:
    requests = per_replica(plan)
    if rule is None or not rule.lowest <= length <= rule.highest:
        return Rung(length, requests)
    low, high = rule.range(length)
    return Rung(length, requests, min(low, requests), max(high, requests))


def per_replica(plan: Plan) -> int:
    """Whole requests that one replica holds."""
    return plan.capacity.requests // plan.parallelism.dp if plan.capacity else 0


def _doubling(first: int, longest: int) -> Iterator[int]:
    while first < longest:
        yield first
        first *= 2


def _by_blocks(asked: Asked, capacity: Capacity) -> RequestRule | None:
    """All groups draw from one pool of blocks, of which an engine may keep one."""
    shortest, longest = asked.at(1), asked.at(asked.longest)
    if not shortest or not longest or not shortest.capacity or not longest.capacity:
        return None
    if len(shortest.capacity.groups) != len(longest.capacity.groups):
        # The engine groups its layers otherwise for short requests.
        return None
    ends = list(zip(shortest.capacity.groups, longest.capacity.groups, strict=True))
    groups: list[GroupRule] = []
    for index, (first, last) in enumerate(ends):
        sizes = (first.block_size, first.block_size * asked.plan.parallelism.dcp)
        rule = _group(
            first.kind,
            (first.blocks_per_request, last.blocks_per_request),
            sizes,
            _group_blocks(asked, index),
            asked,
        )
        if rule is None:
            return None
        groups.append(rule)
    low, high = _block_range(asked.plan, capacity)
    pool = PoolRule("kv", capacity.blocks, _held_back(asked), low, high, tuple(groups))
    return RequestRule((pool,), _sequences(asked.plan), 1, asked.longest)


def _held_back(asked: Asked) -> int:
    """Blocks of the one pool that no request can have: vLLM's null block."""
    pools = asked.pools
    if pools is None or len(pools.pools) != 1 or asked.plan.capacity is None:
        return 0
    return max(0, asked.plan.capacity.blocks - pools.pools[0].count)


def _group_blocks(asked: Asked, index: int) -> Callable[[int], int | None]:
    def blocks(context: int) -> int | None:
        plan = asked.at(context)
        return plan.capacity.groups[index].blocks_per_request if plan and plan.capacity else None

    return blocks


def _group(
    name: str,
    ends: tuple[int, int],
    sizes: Iterable[int],
    units: Callable[[int], int | None],
    asked: Asked,
) -> GroupRule | None:
    """The rule of units that are known at length 1 and at the longest."""
    first, last = ends
    if first == last:
        return GroupRule(name, None, fixed=first)
    for size in dict.fromkeys(sizes):
        # A limit counts where it is reached; past the longest request nothing is claimed.
        unlimited = GroupRule(name, size, fixed=first - 1)
        most = None if unlimited.units(asked.longest) == last else last
        rule = replace(unlimited, most=most)
        if all(units(length) in (None, rule.units(length)) for length in (asked.context, size + 1)):
            return rule
    return None


def _block_range(plan: Plan, capacity: Capacity) -> tuple[int, int]:
    lines = [line for line in plan.ledger if line.section == "pool"]
    if len(lines) != 1 or not capacity.bytes_per_block:
        return capacity.blocks, capacity.blocks
    ends = (lines[0].low, lines[0].high)
    low, high = (max(0, end // capacity.bytes_per_block) for end in ends)
    return min(low, capacity.blocks), max(high, capacity.blocks)


def _sequences(plan: Plan) -> int:
    """The engine's own limit on requests of a replica; without one as many as there are blocks."""
    options = plan.engine.options
    for name in ("max_num_seqs", "max_running_requests", "max_batch_size"):
        if isinstance(options.get(name), int):
            return int(options[name])
    return plan.capacity.blocks if plan.capacity else 0


def _by_pools(asked: Asked) -> RequestRule | None:
    """Every pool has units of its own, as engines with a pool for windows or states have."""
    shared = asked.pools
    if shared is None:
        return None
    pools: list[PoolRule] = []
    for index, pool in enumerate(shared.pools):

        def units(tokens: int, index: int = index) -> int:
            return asked.prepared.request_units(tokens)[index]

        ends = (units(1), units(asked.longest))
        group = _group(pool.name, ends, (shared.step, 1), units, asked)
        if group is None:
            return None
        low, high = _scaled(asked.plan.capacity, pool.count)
        pools.append(PoolRule(pool.name, pool.count, 0, low, high, (group,)))
    return RequestRule(tuple(pools), shared.sequences, 1, asked.longest) if pools else None


def _scaled(capacity: Capacity | None, count: int) -> tuple[int, int]:
    """Ends of a pool's range: pools are cut from one budget, each a share of it."""
    if capacity is None or not capacity.tokens or capacity.tokens_low is None:
        return count, count
    ends = (capacity.tokens_low, capacity.tokens_high or capacity.tokens)
    low, high = (count * end // capacity.tokens for end in ends)
    return min(low, count), max(high, count)


def _checked(asked: Asked, rule: RequestRule) -> RequestRule | None:
    """The rule with the lengths around the planned one for which it is the engine's answer."""
    if not _holds(asked, rule, asked.context):
        return None
    lengths = sorted({asked.context, 1, asked.longest, *_probes(asked.longest)})
    below = [length for length in lengths if length < asked.context]
    above = [length for length in lengths if length > asked.context]
    return replace(
        rule,
        lowest=_edge(asked, rule, reversed(below)),
        highest=_edge(asked, rule, iter(above)),
    )


def _probes(longest: int) -> Iterator[int]:
    for power in _doubling(2, longest):
        for middle in (power, power * 3 // 2):
            yield from (middle + step for step in _AROUND if 1 <= middle + step <= longest)


def _edge(asked: Asked, rule: RequestRule, outwards: Iterator[int]) -> int:
    """The last length, going outwards from the planned one, for which the rule holds."""
    held = asked.context
    for length in outwards:
        if not _holds(asked, rule, length):
            return _bisect(asked, rule, held, length)
        held = length
    return held


def _bisect(asked: Asked, rule: RequestRule, holds: int, fails: int) -> int:
    while abs(fails - holds) > 1:
        middle = (holds + fails) // 2
        if _holds(asked, rule, middle):
            holds = middle
        else:
            fails = middle
    return holds


def _holds(asked: Asked, rule: RequestRule, context: int) -> bool:
    """Whether the engine answers as the rule does, from a pool of the planned size."""
    plan = asked.at(context)
    if plan is None or plan.capacity is None:
        return False
    return rule.requests(context) == per_replica(plan) and _pool(plan) == _pool(asked.plan)


def _pool(plan: Plan) -> list[tuple[str, int, int, int]]:
    pool = [line for line in plan.ledger if line.section == "pool"]
    return [(line.name, line.bytes, line.low, line.high) for line in pool]


def moving_inputs(asked: Asked, rule: RequestRule) -> tuple[MovingInput, ...]:
    """The ledger's inputs that follow the length; None for ``per_token`` where not in a line."""
    others = [plan for length in _spread(rule, asked.context) if (plan := asked.at(length))]
    return tuple(
        MovingInput(line.name, name, _slope(asked, others, index, name))
        for index, line in enumerate(asked.plan.ledger)
        for name in line.inputs
        if any(_input(plan, index, name) != line.inputs[name] for plan in others)
    )


def _spread(rule: RequestRule, context: int) -> tuple[int, ...]:
    middle = (rule.lowest + rule.highest) // 2
    return tuple(dict.fromkeys((rule.lowest, middle, middle + 1, rule.highest, context + 1)))


def _input(plan: Plan, index: int, name: str) -> int | float | None:
    return plan.ledger[index].inputs.get(name) if index < len(plan.ledger) else None


def _slope(asked: Asked, others: list[Plan], index: int, name: str) -> int | None:
    at_planned = asked.plan.ledger[index].inputs[name]
    slopes: set[float | None] = set()
    for plan in others:
        value, length = _input(plan, index, name), plan.workload.context or 1
        if value is None:
            return None
        if length != asked.context:
            slopes.add((value - at_planned) / (length - asked.context))
    only = slopes.pop() if len(slopes) == 1 else None
    return int(only) if only is not None and only == int(only) else None
