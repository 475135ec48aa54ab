"""What a deployment holds of requests that are all alike, beside prefixes and idle sessions."""

from __future__ import annotations

from collections.abc import Sequence

from kvplan.engines.base import Prepared, ReplicaPools
from kvplan.models.formats import ceil_div
from kvplan.plan import Plan
from kvplan.scenario.chain import requests_sharing
from kvplan.scenario.workload import Workload


def with_prefixes(prepared: Prepared, plan: Plan, workload: Workload) -> int | str:
    """Requests of the planned length with every prefix held once; why not, in its stead."""
    context = plan.workload.context
    if context is None:
        return "the plan has no context"
    if not workload.prefixes:
        return "no prefix is stated"
    tokens = sum(prefix.tokens for prefix in workload.prefixes)
    if tokens >= context:
        return f"prefixes of {tokens:,} tokens fill the whole request"
    pools = prepared.pools(context)
    whole = _request(prepared, plan, pools, context)
    return requests_sharing(prepared, context, workload.prefixes, whole) * pools.replicas


def with_sessions(prepared: Prepared, plan: Plan, workload: Workload) -> int | str:
    """Requests of the planned length beside the idle sessions that are kept."""
    context, sessions = plan.workload.context, workload.sessions
    if context is None or sessions is None or sessions.count is None or sessions.tokens is None:
        return "workload.sessions does not state count and tokens"
    pools = prepared.pools(context)
    kept = ceil_div(sessions.count, pools.replicas)
    taken = [kept * units for units in prepared.request_units(sessions.tokens)]
    each = _request(prepared, plan, pools, context)
    return min(pools.sequences, _times(pools, taken, each)) * pools.replicas


def sessions_kept(
    prepared: Prepared, plan: Plan, workload: Workload, concurrency: int | None
) -> int | str:
    """Idle sessions that are kept beside the requests at once."""
    context, sessions = plan.workload.context, workload.sessions
    if context is None or sessions is None or sessions.tokens is None:
        return "workload.sessions does not state tokens"
    if concurrency is None:
        return "no concurrency is stated"
    pools = prepared.pools(context)
    running = ceil_div(concurrency, pools.replicas)
    taken = [running * units for units in _request(prepared, plan, pools, context)]
    return _times(pools, taken, prepared.request_units(sessions.tokens)) * pools.replicas


def _request(prepared: Prepared, plan: Plan, pools: ReplicaPools, context: int) -> Sequence[int]:
    """Units of each pool that `capacity.requests` counts for one request.

    Where there is one pool of blocks, that is the sum over the plan's groups: admission also
    counts what windows need while the prompt is computed.
    """
    groups = plan.capacity.groups if plan.capacity else ()
    if len(pools.pools) == 1 and groups:
        return (sum(group.blocks_per_request for group in groups),)
    return prepared.request_units(context)


def _times(pools: ReplicaPools, taken: Sequence[int], each: Sequence[int]) -> int:
    """How often ``each`` is there beside what is taken."""
    found = [
        max(0, pool.count - gone) // units
        for pool, gone, units in zip(pools.pools, taken, each, strict=True)
        if units
    ]
    return min(found, default=0)
