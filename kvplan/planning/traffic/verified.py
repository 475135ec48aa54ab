"""The held requests once more, by walking through time: see `kvplan.planning.traffic.closed`."""

from __future__ import annotations

from kvplan.engines.base import Prepared
from kvplan.planning.simulate import needs_numpy
from kvplan.planning.traffic.capacity import Held
from kvplan.planning.traffic.replica import Measured, held_by
from kvplan.planning.traffic.traffic import Service, Traffic
from kvplan.traffic_parts import HeldByClosedSimulation


def verified(
    prepared: Prepared,
    measured: Measured,
    asked: tuple[Traffic, Service],
    analysed: Held,
    risk: float,
) -> HeldByClosedSimulation:
    """What a simulation of requests that are always there holds at the risk.

    Args:
        prepared: The configuration.
        measured: Its pools.
        asked: The requests, and how fast they are served.
        analysed: What the analysis found for one replica.
        risk: The chosen risk.

    Raises:
        UsageError: numpy is missing.
    """
    needs_numpy.check("A simulation of held requests")
    from kvplan.planning.traffic.closed import (  # noqa: PLC0415  numpy is an extra
        Part,
        agrees,
        closed_requests,
    )

    traffic, service = asked
    parts = [
        Part(part.pairs, held_by(prepared, part.shared), service.life(part.retention))
        for part in traffic.parts()
    ]
    found, how_often = closed_requests(parts, measured.left, risk)
    return HeldByClosedSimulation(
        requests=found * measured.pools.replicas,
        risk=how_often,
        agrees=agrees(int(analysed.requests), found),
    )
