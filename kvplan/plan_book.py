"""PlanBook: a plan with what a reader may change of it. What workbooks and pages are made from."""

from __future__ import annotations

from dataclasses import dataclass

from kvplan.plan import Plan
from kvplan.traffic_plan import TrafficPlan


@dataclass(frozen=True, slots=True)
class GroupRule:
    """Units of a pool that one group of layers takes of a request.

    Attributes:
        name: What the layers keep: ``full``, ``window``, ``recurrent``.
        tokens_per_unit: A unit more for each; None where the length does not matter.
        fixed: Units on top, whatever the length.
        most: Units at most; None: no limit.
    """

    name: str
    tokens_per_unit: int | None
    fixed: int = 0
    most: int | None = None

    def units(self, context: int) -> int:
        """Units of a request of ``context`` tokens."""
        if self.tokens_per_unit is None:
            return self.fixed
        grown = self.fixed - (-context // self.tokens_per_unit)
        return grown if self.most is None else min(self.most, grown)


@dataclass(frozen=True, slots=True)
class PoolRule:
    """One pool of a replica that every request draws from.

    Attributes:
        name: What it keeps.
        units: How many it has.
        held_back: Of these, units that hold nobody.
        low, high: Ends of the range of ``units``; equal to it where it is certain.
        groups: What takes units.
    """

    name: str
    units: int
    held_back: int
    low: int
    high: int
    groups: tuple[GroupRule, ...]

    def request_units(self, context: int) -> int:
        """Units that one request of ``context`` tokens holds."""
        return sum(group.units(context) for group in self.groups)

    def requests(self, context: int, units: int) -> int:
        """Whole requests that ``units`` of this pool hold."""
        return max(0, units - self.held_back) // self.request_units(context)


@dataclass(frozen=True, slots=True)
class RequestRule:
    """How many requests one replica holds, as arithmetic that a sheet can do.

    Attributes:
        pools: All bind.
        sequences: Most requests that run at once, whatever they hold.
        lowest, highest: Lengths for which this was found to be the engine's own answer.
    """

    pools: tuple[PoolRule, ...]
    sequences: int
    lowest: int
    highest: int

    def requests(self, context: int) -> int:
        """Whole requests of ``context`` tokens."""
        held = (pool.requests(context, pool.units) for pool in self.pools)
        return min(self.sequences, *held)

    def range(self, context: int) -> tuple[int, int]:
        """The same at both ends of the pools' ranges."""
        low = min(self.sequences, *(pool.requests(context, pool.low) for pool in self.pools))
        high = min(self.sequences, *(pool.requests(context, pool.high) for pool in self.pools))
        return low, high


@dataclass(frozen=True, slots=True)
class Rung:
    """The engine's own answer for one length.

    Attributes:
        requests: Of one replica. 0 also where the engine would not start.
        low, high: The same at both ends of the pool's range; None where it is not known.
    """

    context: int
    requests: int
    low: int | None = None
    high: int | None = None


@dataclass(frozen=True, slots=True)
class MovingInput:
    """An input of a ledger line that follows the length of a request.

    Attributes:
        per_token: What a token more adds to it; None where it is not in a straight line.
    """

    line: str
    name: str
    per_token: int | None


@dataclass(frozen=True, slots=True)
class Economics:
    """Money, as far as it is known; a reader fills in the rest.

    Attributes:
        price_per_gpu_hour: None where nobody stated one.
        currency: Its name, ``USD``.
        source: Where the price is from.
        power_watts: Of one GPU at most, or None.
        power_source: Where that is from.
    """

    price_per_gpu_hour: float | None = None
    currency: str = "USD"
    source: str = ""
    power_watts: float | None = None
    power_source: str = ""


@dataclass(frozen=True, slots=True)
class Alternative:
    """One change to the plan, planned again.

    Attributes:
        action: The change in words.
        cost: What is paid for it beside money.
        gained: Requests that it gains although the plan stays the same, as a shared prefix does.
    """

    action: str
    cost: str
    plan: Plan
    gained: int = 0

    @property
    def requests(self) -> int:
        """Whole requests that are held with it."""
        return self.gained + (self.plan.capacity.requests if self.plan.capacity else 0)


@dataclass(frozen=True, slots=True)
class RiskPoint:
    """How likely so many requests hold more than there is.

    Attributes:
        requests: At once, over the deployment; on average where they come at random.
        least, most: The risk with the largest and the smallest pool there may be; None: not known.
    """

    requests: float
    risk: float
    least: float | None = None
    most: float | None = None


@dataclass(frozen=True, slots=True)
class RealTraffic:
    """Real traffic against the plan.

    Attributes:
        curve: Risk by requests at once, from next to nothing to nearly one.
    """

    plan: TrafficPlan
    curve: tuple[RiskPoint, ...]

    @property
    def most_a_replica(self) -> float | None:
        """Requests at once on average that a replica holds at the chosen risk.

        None where nothing arrives at random: more replicas are then no multiple of one.
        """
        load = self.plan.load
        if load is None or load.most_rate_per_s is None:
            return None
        return load.most_rate_per_s * load.life_s / load.replicas


@dataclass(frozen=True, slots=True)
class PlanBook:
    """A plan and what stands beside it in a workbook or on a page.

    Attributes:
        rule: None where requests are not arithmetic of their length (``rungs`` then stand for it).
        moving: Inputs of the ledger that follow the length, for lengths of the rule.
        rungs: In the order of their lengths; the planned length is one of them.
        alternatives: The plan's pieces of advice, each planned in full.
        unit_replicas: Replicas that can only be bought together: all of them where they share the
            weights of their experts, else 1.
        shares_experts: Whether more replicas in one deployment would each hold more.
        traffic: Real traffic, where it was given.
    """

    plan: Plan
    rule: RequestRule | None
    moving: tuple[MovingInput, ...]
    rungs: tuple[Rung, ...]
    alternatives: tuple[Alternative, ...]
    economics: Economics
    unit_replicas: int = 1
    shares_experts: bool = False
    traffic: RealTraffic | None = None

    @property
    def unit_gpus(self) -> int:
        """GPUs of the smallest deployment that is like this one."""
        sizes = self.plan.parallelism
        return sizes.tp * sizes.pp * self.unit_replicas

    @property
    def concurrency(self) -> int:
        """Requests asked for; where none were, those that are held."""
        asked = self.plan.workload.concurrency
        held = self.plan.capacity.requests if self.plan.capacity else 0
        return held if asked is None else asked
