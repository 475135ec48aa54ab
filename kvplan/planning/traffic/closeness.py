"""How far the analysis can be from the truth: where that is more than 2 %, it is not offered.

For one pool whose grid has a cell a unit the analysis is exact. Two things make it a bound:
several pools, whose risks are added although they may run out together; and cells several units
wide, which make every request a little more uncertain than it is.
"""

from __future__ import annotations

import math
from statistics import NormalDist

from kvplan.planning.traffic.capacity import Held, Replica
from kvplan.planning.traffic.overflow import grid_for
from kvplan.planning.traffic.populations import Constant
from kvplan.planning.traffic.seen import Units

CLOSE = 0.02
"""The widest that is offered, of the requests held; a single request is always close enough."""


def most_held(replica: Replica, held: Held, risk: float) -> int:
    """About the most that can be held at the risk; ``held.requests`` is the least."""
    return replica.at_most(held, risk) + round(_added(replica, held, risk))


def is_close(least: int, most: int) -> bool:
    """Whether both ends are near enough to offer the lower one as the answer.

    >>> is_close(100, 102), is_close(100, 103), is_close(9, 10)
    (True, False, True)
    """
    return most - least <= max(1, CLOSE * most)


def _added(replica: Replica, held: Held, risk: float) -> float:
    """Requests that wide cells may cost: what their variance adds to the sum's spread."""
    count, z = max(1, int(held.requests)), NormalDist().inv_cdf(1 - risk)
    lost = [
        z * math.sqrt(count) * (math.sqrt(units.variance + _variance(units, count)) - spread)
        / units.mean
        for units in replica.units
        if (spread := math.sqrt(units.variance)) >= 0 and units.mean
    ]  # fmt: skip
    return max(lost, default=0.0)


def _variance(units: Units, count: int) -> float:
    """Variance that placing a request on the two nearest cells adds."""
    grid = grid_for(units, Constant(count))
    offsets = (((held - grid.shift) % grid.width, share) for held, share in units.atoms)
    return math.fsum(beyond * (grid.width - beyond) * share for beyond, share in offsets)
