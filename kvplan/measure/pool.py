"""The pool, allocated as vLLM lays it out: group by group until it is as large as planned, then on.

A block holds one page of each layer of the widest group; the other groups read the same tensors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from kvplan.errors import UsageError
from kvplan.measure.job import Job
from kvplan.measure.meters import OUT_OF_MEMORY, Meter, is_out_of_memory
from kvplan.plan import CacheGroup

# Steps in which the rest of the memory is tried: coarse first, each a quarter of the one before.
_FIRST_STEP, _LAST_STEP, _FINER = 2**30, 2**20, 4


@dataclass(frozen=True, slots=True)
class PoolResult:
    """What was allocated.

    Attributes:
        groups: Bytes that each group's layers read, in the plan's order.
        allocated: Bytes of the pool; less than planned where memory ran out.
        exhausted: Whether memory ran out before the planned pool was whole.
        beyond: Bytes that could be had beyond the pool; None where nobody tried.
    """

    groups: tuple[int, ...]
    allocated: int
    exhausted: bool
    beyond: int | None


@dataclass(frozen=True, slots=True)
class Slots:
    """Tensors of the pool: one for each layer of the widest group.

    Attributes:
        page_bytes: Bytes of one block in each.
    """

    page_bytes: tuple[int, ...]


def slots_of(job: Job) -> Slots:
    """How a block is cut into tensors."""
    for group in job.groups:
        layers = layers_here(job, group)
        if layers * group.page_bytes == job.bytes_per_block:
            return Slots((group.page_bytes,) * layers)
    # Pages of several sizes side by side: one tensor holds them all.
    return Slots((job.bytes_per_block,))


def layers_here(job: Job, group: CacheGroup) -> int:
    """Layers of a group on the planned rank."""
    start = job.layout.layers[0]
    stop = start + job.planned_layers
    return sum(start <= index < stop for index in group.layer_indices)


def allocate_pool(job: Job, meter: Meter, *, to_exhaustion: bool) -> PoolResult:
    """Allocates the planned pool, then what is left, and frees everything again."""
    before = meter.allocated()
    slots = slots_of(job)
    held: list[Any] = []
    seen: list[int] = []
    exhausted = False
    for group in job.groups:
        needed = max(1, layers_here(job, group)) if len(slots.page_bytes) > 1 else 1
        while len(held) < min(needed, len(slots.page_bytes)) and not exhausted:
            exhausted = not _take(held, job.blocks * slots.page_bytes[len(held)], meter)
        seen.append(sum(tensor.nbytes for tensor in held[:needed]))
    allocated = meter.allocated() - before
    beyond = _exhaust(meter) if to_exhaustion and not exhausted else None
    held.clear()
    return PoolResult(tuple(seen), allocated, exhausted, 0 if exhausted else beyond)


def _take(held: list[Any], size: int, meter: Meter) -> bool:
    """Adds a tensor of ``size`` bytes; False where there is no room."""
    if size > meter.free() + meter.reserved() - meter.allocated():
        return False
    try:
        held.append(torch.empty(size, dtype=torch.int8, device=meter.device))
    except OUT_OF_MEMORY as error:
        if not is_out_of_memory(error):
            raise
        return False
    return True


def _exhaust(meter: Meter) -> int:
    """Bytes that can still be had, in finer and finer steps. Frees them again."""
    held: list[Any] = []
    step = _FIRST_STEP
    while step >= _LAST_STEP:
        if not _take(held, step, meter):
            step //= _FINER
    total = sum(int(tensor.nbytes) for tensor in held)
    held.clear()
    return total


def check_groups(job: Job) -> None:
    """Refuses a pool that nothing could be laid out in.

    Raises:
        UsageError: there is not one block.
    """
    if job.blocks < 1:
        raise UsageError(
            "The plan has no block of cache, so there is no pool to measure.",
            hint="Plan something that fits, or a shorter context.",
        )
