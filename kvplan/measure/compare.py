"""A plan's ledger beside what was measured: one row a line, and the whole as a record."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kvplan._version import __version__
from kvplan.ledger import LedgerLine, total
from kvplan.measure.job import WEIGHTS, Job
from kvplan.measure.run import Measured
from kvplan.measured_plan import MeasuredLine, MeasuredPlan, Outcome
from kvplan.measurement import Measurement
from kvplan.plan import Plan
from kvplan.units import GIB

_EXPERT_BUFFERS = "expert_buffers"
_LEFT = {
    "multimodal_profile": "images are not profiled",
    "compilation": "nothing is compiled",
    "cuda_graphs": "no graphs are captured",
    "nccl": "one process measures one rank",
    "latent_workspace": "part of activation_peak",
    "budget_rest": "the engine's own bookkeeping",
    "outside_unused": "the engine's own bookkeeping",
    "unused": "the engine's own bookkeeping",
}


@dataclass(frozen=True, slots=True)
class Terms:
    """How a line is judged.

    Attributes:
        tolerance: Share of a line that it may be off by.
        floor: Bytes that any line may be off by.
        context: Memory of the device's context, or None where nobody could tell.
        real_device: Whether the figures are a GPU's, not counts of tensors.
    """

    tolerance: float
    floor: int
    context: int | None
    real_device: bool


def compare(
    plan: Plan, job: Job, found: Measured, terms: Terms, remarks: tuple[str, ...]
) -> MeasuredPlan:
    """All lines of the plan, judged."""
    lines = tuple(_judged(line, *_found(line, job, found, terms), terms) for line in _planned(job))
    if terms.real_device:
        lines += tuple(_device_lines(plan, job, found, terms))
    return MeasuredPlan(
        model=plan.model.id,
        device=found.device,
        layers=len(job.layer_indices),
        layers_planned=job.planned_layers,
        tolerance=terms.tolerance,
        floor_bytes=terms.floor,
        lines=lines,
        figures=_figures(found),
        remarks=(*remarks, *_scaled(job)),
        record=_record(plan, job, found, terms),
    )


def _planned(job: Job) -> Iterator[LedgerLine]:
    """The plan's lines; those of weights as they are for the measured layers."""
    components = job.component_bytes()
    for line in job.ledger:
        size = components.get(line.name, line.bytes) if job.scaled else line.bytes
        yield (
            line
            if size == line.bytes
            else line.model_copy(update={"bytes": size, "low": size, "high": size})
        )


def _found(line: LedgerLine, job: Job, found: Measured, terms: Terms) -> tuple[int | None, str]:
    """Bytes found for a line, or None and why."""
    if line.name.startswith(WEIGHTS):
        size = found.weights.get(line.name)
        return size, "" if size is not None else "not allocated for fewer layers than planned"
    apart = any(other.name == _EXPERT_BUFFERS for other in job.ledger)
    peak = max(found.forward.layer_step, found.forward.logits)
    known: dict[str, tuple[int | None, str]] = {
        "kv_cache": (found.pool.allocated, "memory ran out" if found.pool.exhausted else ""),
        _EXPERT_BUFFERS: (found.forward.workspace, ""),
        "activation_peak": (peak - found.forward.workspace * apart, _phase(found)),
    }
    if terms.real_device:
        known["non_torch"] = (found.non_torch, "")
    if terms.context is not None:
        known["cuda_context"] = (terms.context, "")
    missing = (None, _LEFT.get(line.name, "nothing tells it on this device"))
    return known.get(line.name, missing)


def _phase(found: Measured) -> str:
    sampling = found.forward.logits >= found.forward.layer_step
    return "logits and sampler" if sampling else "a layer's step"


def _judged(line: LedgerLine, measured: int | None, note: str, terms: Terms) -> MeasuredLine:
    # A pool is as large as planned or it is not: its range is one of budgets.
    ends = (line.bytes, line.bytes) if line.name == "kv_cache" else (line.low, line.high)
    return MeasuredLine(
        name=line.name,
        planned=line.bytes,
        low=line.low,
        high=line.high,
        measured=measured,
        outcome=outcome(line.bytes, ends, measured, terms),
        note=note,
    )


def outcome(planned: int, ends: tuple[int, int], measured: int | None, terms: Terms) -> Outcome:
    """How a measured figure stands to a planned one."""
    if measured is None:
        return "not_measured"
    if abs(measured - planned) <= max(terms.floor, terms.tolerance * planned):
        return "close"
    return "within_range" if ends[0] <= measured <= ends[1] else "off"


def _device_lines(plan: Plan, job: Job, found: Measured, terms: Terms) -> Iterator[MeasuredLine]:
    """The device's size, and what is left beside weights and pool."""
    yield _line("device_total", plan.gpu.total_bytes, found.total, terms)
    if found.pool.beyond is not None and not job.scaled:
        taken = sum(
            line.bytes
            for line in plan.ledger
            if line.name.startswith(WEIGHTS)
            or line.name in ("kv_cache", "non_torch", "cuda_context")
        )
        left = total(plan.ledger) - taken
        yield _line("free_beside_pool", left, found.pool.beyond, terms)


def _line(name: str, planned: int, measured: int, terms: Terms) -> MeasuredLine:
    return MeasuredLine(
        name=name,
        planned=planned,
        low=planned,
        high=planned,
        measured=measured,
        outcome=outcome(planned, (planned, planned), measured, terms),
    )


def _figures(found: Measured) -> dict[str, int]:
    figures = {
        "total": found.total,
        "free_before": found.free_before,
        "weights_allocated": found.weights_allocated,
        "layer_step_peak": found.forward.layer_step,
        "logits_peak": found.forward.logits,
        "expert_workspace": found.forward.workspace,
        "reserved_after_forward": found.forward.reserved,
        "stand_in_for_packed_weights": found.forward.stand_in,
        "pool_allocated": found.pool.allocated,
    }
    if found.pool.beyond is not None:
        figures["beyond_pool"] = found.pool.beyond
    return figures


def _scaled(job: Job) -> Iterator[str]:
    if job.scaled:
        yield (
            f"Only {len(job.layer_indices)} of the rank's {job.planned_layers} layers were"
            " allocated; lines of weights are those of these layers."
        )


def _record(plan: Plan, job: Job, found: Measured, terms: Terms) -> Measurement:
    """The same as a measurement record, of the engine whose plan was allocated.

    No engine ran: `measured_on` says what the figures were counted on, a device's name, ``cpu``
    or ``fake``.
    """
    options = plan.engine.options
    blocks = found.pool.allocated // job.bytes_per_block
    return Measurement(
        id=f"measure-{plan.model.id}",
        source=f"kvplan {__version__} measure",
        engine=plan.engine.name,
        engine_version=plan.engine.version,
        model=plan.model.id,
        gpu=plan.gpu.id,
        gpu_count=plan.gpu.count,
        gpu_total_gib=found.total / GIB if terms.real_device else None,
        tp=plan.parallelism.tp,
        pp=plan.parallelism.pp,
        dp=plan.parallelism.dp,
        max_model_len=plan.workload.context,
        max_num_seqs=job.requests,
        max_num_batched_tokens=job.tokens,
        kv_cache_dtype=str(options.get("kv_cache_dtype") or job.dtype),
        dtype=job.dtype,
        block_size=job.block_size,
        enforce_eager=True,
        weights_gib=None if job.scaled else sum(found.weights.values()) / GIB,
        activation_peak_gib=max(found.forward.layer_step, found.forward.logits) / GIB,
        non_torch_gib=found.non_torch / GIB if terms.real_device else None,
        available_kv_gib=found.pool.allocated / GIB,
        num_gpu_blocks=blocks,
        outcome="error: memory ran out before the planned pool"
        if found.pool.exhausted
        else "started",
        measured_on=found.device,
    )
