"""How the risk grows with the requests at once: the curve behind the one chosen risk."""

from __future__ import annotations

from collections.abc import Callable

from kvplan.plan import Capacity
from kvplan.plan_book import RiskPoint
from kvplan.planning.traffic.capacity import Replica
from kvplan.planning.traffic.populations import Constant, Poisson
from kvplan.planning.traffic.replica import Measured

POINTS = 40
# The curve begins where the risk is this small, and ends where it is this large.
_LEAST, _MOST = 1e-5, 0.99


def risk_curve(
    measured: Measured, capacity: Capacity | None, *, arriving: bool
) -> tuple[RiskPoint, ...]:
    """The risk for numbers of requests at once, of the whole deployment.

    Args:
        measured: One replica under the traffic.
        capacity: With the range of the pool, if there is one.
        arriving: Whether requests come at random, so that their number is a mean; else it is
            always the same.
    """
    replica, replicas = measured.replica(), measured.pools.replicas
    low, high = _ends(measured, capacity)
    first, last = _between(replica, arriving=arriving)
    step = (last - first) / (POINTS - 1)
    numbers = [first + step * point for point in range(POINTS)]
    if not arriving:
        numbers = sorted({float(round(number)) for number in numbers})
    return tuple(
        RiskPoint(
            requests=number * replicas,
            risk=_risk(replica, number, arriving=arriving),
            least=None if high is None else _risk(high, number, arriving=arriving),
            most=None if low is None else _risk(low, number, arriving=arriving),
        )
        for number in numbers
    )


def _risk(replica: Replica, number: float, *, arriving: bool) -> float:
    return replica.risk(Poisson(number) if arriving else Constant(round(number)))


def _between(replica: Replica, *, arriving: bool) -> tuple[float, float]:
    """Numbers of requests between which the risk grows from next to nothing to nearly one."""

    def risk(number: float) -> float:
        return _risk(replica, number, arriving=arriving)

    high = 1.0
    while risk(high) < _MOST:
        high *= 2
    return _where(risk, _LEAST, high), max(2.0, _where(risk, _MOST, high))


def _where(risk: Callable[[float], float], wanted: float, high: float) -> float:
    low = 0.0
    while high - low > max(0.5, 0.005 * high):
        middle = (low + high) / 2
        low, high = (low, middle) if risk(middle) > wanted else (middle, high)
    return max(1.0, low)


def _ends(measured: Measured, capacity: Capacity | None) -> tuple[Replica | None, Replica | None]:
    """The replica with the smallest and with the largest pool there may be."""
    if capacity is None or not capacity.tokens:
        return None, None
    low, high = capacity.tokens_low, capacity.tokens_high
    if low is None or high is None or not 0 < low < high:
        return None, None
    return measured.replica_of(low / capacity.tokens), measured.replica_of(high / capacity.tokens)
