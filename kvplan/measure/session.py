"""A measurement from plan to comparison: device, consent, scale, run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Literal

from torch._subclasses.fake_tensor import FakeTensorMode

from kvplan.errors import FactsError, UsageError
from kvplan.measure.compare import Terms, compare
from kvplan.measure.job import Job, job_of
from kvplan.measure.meters import Meter, cpu_meter, cuda_meter
from kvplan.measure.pool import check_groups
from kvplan.measure.run import measure
from kvplan.measured_plan import MeasuredPlan
from kvplan.models.spec import ModelSpec
from kvplan.plan import Plan
from kvplan.units import GIB, MIB, format_bytes

Kind = Literal["cuda", "cpu", "fake"]
# More of a shared card's free memory than this is taken only with consent.
SHARE = 0.9
# Layers are left out where weights alone take more of the free memory than this.
_WEIGHTS_SHARE = 0.8
# A context takes less than this; what is in use beyond it is somebody else's.
_CONTEXT_AT_MOST = 2 * GIB
# What torch's allocator rounds and what a driver's figure jumps by.
_FLOOR = 32 * MIB


@dataclass(frozen=True, slots=True)
class Wanted:
    """How to measure.

    Attributes:
        kind: On a GPU, with tensors on the CPU, or with tensors that have no memory.
        index: Which GPU.
        layers: Allocate only so many; None: as many as fit.
        exhaust: Whether to try how much memory is left beyond the pool.
        tolerance: Share of a line that it may be off by.
    """

    kind: Kind
    index: int = 0
    layers: int | None = None
    exhaust: bool = True
    tolerance: float = 0.05


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the caller knows of the device, and whom it can ask.

    Attributes:
        used: Bytes in use on the device now, as its driver says; None: not known.
        shared: Whether others use the device; None: its driver does not tell.
        consent: Asked with a sentence before most of a shared device's memory is taken.
    """

    used: Callable[[], int | None]
    shared: bool | None
    consent: Callable[[str], bool]


def run(plan: Plan, model: ModelSpec, wanted: Wanted, around: Surroundings) -> MeasuredPlan:
    """Measures a plan.

    Raises:
        UsageError: the plan has nothing to measure, or consent was not given.
        FactsError: no device, or one that is too small.
    """
    job = job_of(plan, model)
    check_groups(job)
    before = around.used()
    with _meter(wanted, plan) as meter:
        context = _context(before, around.used(), meter) if wanted.kind == "cuda" else None
        job, remarks = _scaled(job, wanted, meter)
        exhaust = wanted.exhaust and wanted.kind == "cuda"
        _ask(job, meter, around, exhaust=exhaust)
        found = measure(job, meter, to_exhaustion=exhaust, one_of_each_kind=wanted.kind == "fake")
    real = wanted.kind == "cuda"
    terms = Terms(wanted.tolerance, _FLOOR if real else 0, context, real)
    return compare(plan, job, found, terms, remarks)


@contextmanager
def _meter(wanted: Wanted, plan: Plan) -> Iterator[Meter]:
    if wanted.kind == "cuda":
        with cuda_meter(wanted.index) as meter:
            yield meter
        return
    # A made-up device of the planned size.
    without_memory = FakeTensorMode() if wanted.kind == "fake" else nullcontext()
    with without_memory, cpu_meter(plan.gpu.total_bytes, wanted.kind) as counted:
        yield counted


def _context(before: int | None, after: int | None, meter: Meter) -> int | None:
    if before is None or after is None:
        return None
    return max(0, after - before - meter.reserved())


def _scaled(job: Job, wanted: Wanted, meter: Meter) -> tuple[Job, tuple[str, ...]]:
    """The job with as many layers as were asked for, or as fit."""
    if wanted.layers is not None:
        return job.with_layers(wanted.layers), ()
    room = int(_WEIGHTS_SHARE * meter.free())
    if wanted.kind == "fake" or job.weight_bytes() <= room:
        return job, ()
    for count in range(job.planned_layers - 1, 0, -1):
        smaller = job.with_layers(count)
        if smaller.weight_bytes() <= room:
            return smaller, (f"{format_bytes(meter.free())} are free.",)
    raise FactsError(
        f"Not one layer fits: {format_bytes(meter.free())} of {meter.name} are free.",
        hint="Free the device, plan more tensor parallel ranks, or count with --device fake.",
    )


def _ask(job: Job, meter: Meter, around: Surroundings, *, exhaust: bool) -> None:
    free = meter.free()
    wanted = free if exhaust else job.weight_bytes() + job.pool_bytes
    # Where no driver tells who uses it, what is taken beside our own context does.
    others = meter.total - free - meter.reserved() > _CONTEXT_AT_MOST
    shared = others if around.shared is None else around.shared
    if not shared or wanted <= SHARE * free:
        return
    question = (
        f"{meter.name} is used by others too, and {format_bytes(min(wanted, free))} of its free"
        f" {format_bytes(free)} would be taken for a while. Go on?"
    )
    if not around.consent(question):
        raise UsageError(
            "Nothing was allocated: others use this device.",
            hint="Give --yes to take its memory all the same, or leave room with --no-exhaust and"
            " a smaller plan.",
        )
