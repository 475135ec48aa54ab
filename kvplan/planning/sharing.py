"""The shortest beginning that all requests have to share for the target to be held."""

from __future__ import annotations

from collections.abc import Sequence

from kvplan.engines.base import Prepared
from kvplan.errors import NotModelledError

# A longer shared beginning than this share of a request is no longer a system prompt.
MOST_SHARED = 0.75


def held_with(prepared: Prepared, context: int, shared: int) -> int:
    """Requests of ``context`` tokens over the deployment whose first ``shared`` are the same.

    Those are held once a replica.

    Raises:
        NotModelledError: the engine has no pool for requests that come and go.
    """
    pools = prepared.pools(context)
    own = prepared.own_units(context, shared)
    # The prefix is held once, whole steps of it, as the engine shares them.
    once: Sequence[int] = (0,) * len(own)
    if shared:
        whole, left = prepared.request_units(shared), prepared.own_units(shared, shared)
        once = tuple(all_ - part for all_, part in zip(whole, left, strict=True))
    held = pools.sequences
    for pool, each, kept in zip(pools.pools, own, once, strict=True):
        if each:
            held = min(held, max(0, pool.count - kept) // each)
        elif kept > pool.count:
            held = 0
    return held * pools.replicas


def shortest_prefix(
    prepared: Prepared, context: int, target: int, held: int
) -> tuple[int, int] | None:
    """Tokens that have to be shared, in whole steps, and the requests held then; None: no such.

    Args:
        prepared: The configuration.
        context: Tokens of a request.
        target: Requests to hold.
        held: Those of the plan. Where the engine counts requests otherwise while it admits them,
            sharing is not judged.
    """
    try:
        step = prepared.pools(context).step
        most = int(context * MOST_SHARED) // step
        if held_with(prepared, context, 0) != held:
            return None
        if not most or held_with(prepared, context, most * step) < target:
            return None
    except NotModelledError:
        return None
    low, high = 0, most
    while high - low > 1:
        middle = (low + high) // 2
        enough = held_with(prepared, context, middle * step) >= target
        low, high = (low, middle) if enough else (middle, high)
    return high * step, held_with(prepared, context, high * step)
