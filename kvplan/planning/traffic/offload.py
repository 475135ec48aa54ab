"""Memories behind the GPUs': what they hold, how fast a prompt comes back, what that is worth."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from kvplan.hardware import GpuSpec
from kvplan.planning.traffic.links import GIVEN, link_of
from kvplan.planning.traffic.speeds import Machine, Prompts, transfer_of
from kvplan.traffic_parts import OffloadTier


@dataclass(frozen=True, slots=True)
class TierAsked:
    """A tier as the user says it.

    Attributes:
        name: ``host``, ``disk`` or ``remote``.
        bytes: Of one replica.
        link: The name of a GPU's link, or the rate at which the replica reads.
    """

    name: str
    bytes: int
    link: str


@dataclass(frozen=True, slots=True)
class Running:
    """Requests that generate at once on a replica, and their mean tokens."""

    requests: int
    tokens: float


def offload_tiers(
    asked: Iterable[TierAsked], machine: Machine, gpu: GpuSpec, prompts: Prompts, running: Running
) -> tuple[OffloadTier, ...]:
    """Works out each tier.

    Args:
        asked: The tiers.
        machine: The replica that they are behind.
        gpu: Whose links are meant by name.
        prompts: What is loaded.
        running: What a step reads.

    Raises:
        UsageError: a link that does not exist.
    """
    return tuple(_tier(one, machine, gpu, prompts, running) for one in asked)


def _tier(
    asked: TierAsked, machine: Machine, gpu: GpuSpec, prompts: Prompts, running: Running
) -> OffloadTier:
    link = link_of(asked.link, gpu)
    if link.source == GIVEN:
        link = replace(link, bytes_per_s=link.bytes_per_s / machine.ranks)
    load = transfer_of(prompts, machine.gpu_bytes, link.bytes_per_s)
    compute = machine.prompt_s(round(prompts.mean))
    seen = round(running.tokens)
    requests = asked.bytes / machine.ranks / max(1, machine.gpu_bytes(seen))
    return OffloadTier(
        name=asked.name,
        bytes=asked.bytes,
        bytes_per_s=link.bytes_per_s,
        source=f"{link.name}: {link.source}",
        tokens=int(requests * seen),
        requests=requests,
        load=load,
        compute_mean_s=compute,
        compute_p95_s=machine.prompt_s(prompts.p95),
        faster=None if compute is None else compute / load.seconds_mean,
        decode_requests=running.requests,
        decode_step_s=machine.step_s(running.requests, seen),
        decode_from_tier_s=_from_tier(machine, running, link.bytes_per_s),
        most_loads_per_s=1 / load.seconds_mean,
    )


def _from_tier(machine: Machine, running: Running, rate: float) -> float | None:
    """A step of requests whose cache stays in the tier: it is read over the link each time."""
    alone = machine.step_s(running.requests, 0)
    read = running.requests * machine.gpu_bytes(round(running.tokens))
    return None if alone is None else max(alone, read / rate)
