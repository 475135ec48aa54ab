"""The forward's peak for any model, on tensors that have a shape and no memory."""

from __future__ import annotations

from dataclasses import dataclass

from torch._subclasses.fake_tensor import FakeTensorMode

from kvplan.measure.job import Job
from kvplan.measure.meters import cpu_meter
from kvplan.measure.run import run_forward
from kvplan.measure.step import representatives
from kvplan.measure.store import allocate

_ENDLESS = 2**62


@dataclass(frozen=True, slots=True)
class Peaks:
    """Bytes beyond the weights.

    Attributes:
        weights: The weights' own bytes.
        layer_step: Peak of the blocks.
        logits: Peak of logits and sampler; 0 where the rank does not sample.
    """

    weights: int
    layer_step: int
    logits: int


def peaks(job: Job) -> Peaks:
    """Runs one layer of each kind and the sampler without memory."""
    with FakeTensorMode(), cpu_meter(_ENDLESS) as meter:
        weights = allocate(job, meter.device)
        size = meter.allocated()
        forward = run_forward(job, weights, meter, representatives(job, weights))
        return Peaks(weights=size, layer_step=forward.layer_step, logits=forward.logits)
