"""Traffic on an engine's pools: what seen requests hold, and what a shared prefix takes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from kvplan.engines.base import Prepared, ReplicaPools
from kvplan.planning.traffic.capacity import Replica
from kvplan.planning.traffic.overflow import Grids
from kvplan.planning.traffic.seen import Seen, Units, seen, units_of
from kvplan.planning.traffic.traffic import Part, Service, Traffic

Held = Callable[[int], tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Measured:
    """Pools and units of one replica under some traffic.

    Attributes:
        pools: As the engine has them.
        left: The same without what shared prefixes take.
        units: Of each pool, what a seen request holds itself.
        whole: The same if nothing were shared.
        steps: Mean time that an arriving request holds blocks, in decoding steps.
        kept_steps: Of these, steps after its last token, for the session's next turn.
        once: Units of each pool that one version of all prefixes takes.
        tokens: Tokens of a request that is seen, on average.
        made: Grids of the units, which all its replicas share.
    """

    pools: ReplicaPools
    left: ReplicaPools
    units: tuple[Units, ...]
    whole: tuple[Units, ...]
    steps: float
    kept_steps: float
    once: tuple[int, ...]
    tokens: float
    made: Grids = field(default_factory=Grids, compare=False, repr=False)

    def replica(self) -> Replica:
        """The replica that requests are held by."""
        return Replica(self.left, self.units, self.made)

    def replica_of(self, share: float) -> Replica:
        """The same with pools of ``share`` times their units; a prefix takes what it takes."""
        pools = tuple(
            replace(left, count=max(0, left.count - pool.count + math.floor(pool.count * share)))
            for left, pool in zip(self.left.pools, self.pools.pools, strict=True)
        )
        return Replica(replace(self.left, pools=pools), self.units, self.made)


def measure(
    prepared: Prepared, context: int, traffic: Traffic, service: Service, *, versions: float = 1.0
) -> Measured:
    """Works out what requests hold.

    Args:
        prepared: The engine's configuration.
        context: The longest request that it is started for.
        traffic: Requests that it takes.
        service: How fast.
        versions: Versions of a shared prefix that are held at once.

    Raises:
        NotModelledError: the engine has no pool for requests that come and go.
        UsageError: no request.
    """
    pools = prepared.pools(context)
    parts = [_look(prepared, pools, part, service) for part in traffic.parts()]
    once = _once(prepared, pools, traffic)
    arriving = math.fsum(part.share for part in parts)
    return Measured(
        pools=pools,
        left=_without(pools, once, versions),
        units=_together([(part.weight, part.own) for part in parts]),
        whole=_together([(part.weight, part.whole) for part in parts]),
        steps=math.fsum(part.weight for part in parts) / arriving,
        kept_steps=math.fsum(part.seen.kept_steps * part.share for part in parts) / arriving,
        once=once,
        tokens=_mean_tokens(parts),
    )


@dataclass(frozen=True, slots=True)
class _Looked:
    """A part of the traffic: what is seen of it, and what that holds.

    Attributes:
        share: Of the arrivals, in the scale of the pairs.
        own, whole: Units of each pool with what is shared left out, and with it.
    """

    seen: Seen
    share: float
    own: tuple[Units, ...]
    whole: tuple[Units, ...]

    @property
    def weight(self) -> float:
        """It is seen as often as it arrives, times its life."""
        return self.seen.steps * self.share


def _look(prepared: Prepared, pools: ReplicaPools, part: Part, service: Service) -> _Looked:
    found = seen(part.pairs, step=pools.step, life=service.life(part.retention))
    count, share = len(pools.pools), math.fsum(share for _, _, share in part.pairs)
    own = whole = units_of(found.tokens, prepared.request_units, count)
    if part.shared:
        own = units_of(found.tokens, held_by(prepared, part.shared), count)
    return _Looked(found, share, own, whole)


def _mean_tokens(parts: Sequence[_Looked]) -> float:
    whole = math.fsum(part.weight for part in parts)
    means = ((part.weight, math.fsum(t * at for t, at in part.seen.tokens)) for part in parts)
    return math.fsum(weight * mean for weight, mean in means) / whole


def held_by(prepared: Prepared, shared: int) -> Held:
    """The rule of what a request holds itself, of which so many tokens are shared."""
    if not shared:
        return prepared.request_units

    def held(tokens: int) -> tuple[int, ...]:
        return prepared.own_units(tokens, min(tokens, shared))

    return held


def _once(prepared: Prepared, pools: ReplicaPools, traffic: Traffic) -> tuple[int, ...]:
    """What all copies of a prefix take: its whole steps, as requests share them."""
    rule = traffic.prefix
    if rule is None:
        return (0,) * len(pools.pools)
    held = prepared.request_units(rule.tokens)
    own = prepared.own_units(rule.tokens, rule.tokens)
    return tuple(rule.copies * (all_ - part) for all_, part in zip(held, own, strict=True))


def _without(pools: ReplicaPools, once: tuple[int, ...], versions: float) -> ReplicaPools:
    left = tuple(
        replace(pool, count=max(0, pool.count - math.ceil(versions * taken)))
        for pool, taken in zip(pools.pools, once, strict=True)
    )
    return replace(pools, pools=left)


def _together(parts: Sequence[tuple[float, tuple[Units, ...]]]) -> tuple[Units, ...]:
    """Units of all parts by their weights."""
    whole = math.fsum(weight for weight, _ in parts)
    mixed: list[Units] = []
    for pool in range(len(parts[0][1])):
        sums: dict[int, float] = {}
        for weight, units in parts:
            for held, share in units[pool].atoms:
                sums[held] = sums.get(held, 0.0) + share * weight / whole
        mixed.append(Units(tuple(sorted(sums.items()))))
    return tuple(mixed)
