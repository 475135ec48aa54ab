"""One measurement: weights, forward, sampler, pool, each read and given back.

Everything is freed however it ends: nothing outlives its function but numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from kvplan.errors import FactsError
from kvplan.measure.job import Job
from kvplan.measure.meters import (
    OUT_OF_MEMORY,
    Meter,
    device_failed,
    is_of_the_device,
    is_out_of_memory,
)
from kvplan.measure.operands import Operands
from kvplan.measure.pool import PoolResult, allocate_pool
from kvplan.measure.step import Step, representatives, sample
from kvplan.measure.store import Matrix, Weights, allocate
from kvplan.units import format_bytes


@dataclass(frozen=True, slots=True)
class Forward:
    """A forward's peaks, in bytes beyond what was allocated before it.

    Attributes:
        layer_step: Of the blocks.
        logits: Of logits and sampler; 0 where the rank does not sample.
        workspace: The experts' buffers, part of both.
        reserved: What torch's allocator held at the end.
        stand_in: Bytes allocated in place of kernels for packed weights; in no other figure.
    """

    layer_step: int
    logits: int
    workspace: int
    reserved: int
    stand_in: int


@dataclass(frozen=True, slots=True)
class Measured:
    """All that was found, in bytes.

    Attributes:
        weights: By the ledger's names.
        non_torch: What the device lost to others than torch's allocator during the run.
    """

    device: str
    total: int
    free_before: int
    weights: dict[str, int]
    weights_allocated: int
    forward: Forward
    non_torch: int
    pool: PoolResult


def measure(
    job: Job, meter: Meter, *, to_exhaustion: bool, one_of_each_kind: bool = False
) -> Measured:
    """Allocates and runs everything once.

    Args:
        job: What to allocate and run.
        meter: Where.
        to_exhaustion: Whether to try how much is left beyond the pool.
        one_of_each_kind: Run one layer of each kind instead of all: the peak is the same.

    Raises:
        FactsError: the device ran out of memory before the pool, or failed.
    """
    free_before, base, held = meter.free(), meter.allocated(), meter.reserved()
    try:
        weights = allocate(job, meter.device)
        sizes, allocated = weights.bytes_by_line(), meter.allocated() - base
        order = representatives(job, weights) if one_of_each_kind else None
        forward = run_forward(job, weights, meter, order)
    except OUT_OF_MEMORY as error:
        explained = _explained(error, job, meter.name, free_before)
        if explained is None:
            raise
        raise explained from error
    meter.reset_peak()
    non_torch = (free_before - meter.free()) - (meter.reserved() - held)
    pool = allocate_pool(job, meter, to_exhaustion=to_exhaustion)
    return Measured(
        device=meter.name,
        total=meter.total,
        free_before=free_before,
        weights=sizes,
        weights_allocated=allocated,
        forward=forward,
        non_torch=max(0, non_torch),
        pool=pool,
    )


def _explained(error: RuntimeError, job: Job, name: str, free: int) -> FactsError | None:
    """What to say of an error of torch, or None if it is neither memory's nor the device's."""
    if is_out_of_memory(error):
        return FactsError(
            f"{name} ran out of memory: {format_bytes(free)} were free, weights of"
            f" {len(job.layer_indices)} layers take {format_bytes(job.weight_bytes())}.",
            hint="Measure fewer layers with --layers, or fewer tokens.",
        )
    return device_failed(name, error) if is_of_the_device(error) else None


def run_forward(
    job: Job, weights: Weights, meter: Meter, order: tuple[int, ...] | None = None
) -> Forward:
    """Runs the blocks (all, or the layers of ``order``) and the sampler at the profile's shape."""
    with torch.inference_mode():
        operands = Operands(_every(weights), job.dtype, meter.device)
        step = Step(job, weights, operands, order or tuple(job.layer_indices))
        meter.reset_peak()
        base = meter.allocated()
        workspace = step.workspace()
        hidden = step.run(workspace)
        layer_step, logits = meter.peak() - base, 0
        if job.layout.last:
            meter.reset_peak()
            sample(job, weights, operands, hidden)
            logits = meter.peak() - base
        return Forward(
            layer_step=layer_step,
            logits=logits,
            workspace=int(workspace.nbytes),
            reserved=meter.reserved(),
            stand_in=operands.stand_in_bytes,
        )


def _every(weights: Weights) -> list[Matrix]:
    return [m for layer in weights.layers.values() for m in layer] + list(weights.others)
