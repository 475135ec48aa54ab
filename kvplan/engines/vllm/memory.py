"""One rank's memory as ledger lines, and the bytes that remain for the cache.

available = ceil(total × utilization) - weights - activation peak - non-torch - CUDA graphs.
Source: vLLM 0.33.0, determine_available_memory in vllm/v1/worker/gpu_worker.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kvplan.engines import occupied, runtime
from kvplan.engines.base import Version
from kvplan.engines.runtime import Range
from kvplan.engines.vllm import adapters, towers
from kvplan.engines.vllm.activation import Run, activation_lines, fitted, gib_line
from kvplan.engines.vllm.calibration import Interval, RuntimeBand, nearest, widened
from kvplan.engines.vllm.coverage import Coverage, conditions, coverage, device_of
from kvplan.engines.vllm.graphs import captured
from kvplan.engines.vllm.history import Rules
from kvplan.engines.vllm.hosted import corrected
from kvplan.engines.vllm.runner import estimates_graphs, other_bytes
from kvplan.engines.vllm.settings import Settings
from kvplan.engines.vllm.weight_lines import weight_lines
from kvplan.hardware import DeviceMemory
from kvplan.host_profile import HostProfile
from kvplan.ledger import Draft, Section
from kvplan.models.formats import DTYPE_BYTES, Dtype
from kvplan.models.spec import ModelSpec
from kvplan.models.weights import RankLayout
from kvplan.units import GIB

OTHERS = occupied.NAME
SOURCE = "vLLM 0.33.0, vllm/v1/worker/gpu_worker.py determine_available_memory"
# Compute capabilities whose ranks exchange through NVLink multicast, with buffers of their own.
_MULTICAST = (9, 10)


@dataclass(frozen=True, slots=True)
class RankInputs:
    """What the lines of one rank are computed from."""

    model: ModelSpec
    dtype: Dtype
    device: DeviceMemory
    settings: Settings
    rules: Rules
    version: Version
    layout: RankLayout
    world: int
    sm: tuple[int, int]
    context: int
    draft: ModelSpec | None = None
    vendor: str = "nvidia"
    used_by_others: int = 0
    profile: HostProfile | None = None


@dataclass(frozen=True, slots=True)
class RankMemory:
    """One rank, before the pool is cut.

    Attributes:
        budget: Lines inside the budget.
        outside: Lines beside it.
        requested: The whole budget in bytes.
        available: Bytes left for the cache; may be negative.
        interval: How far a start may be off.
        other: Bytes more that are left if another sampler runs, which no flag tells.
        coverage: Whether starts like it were measured.
    """

    device: DeviceMemory
    utilization: float
    budget: tuple[Draft, ...]
    outside: tuple[Draft, ...]
    requested: int
    available: int
    interval: Interval
    coverage: Coverage
    other: int = 0

    @property
    def spent(self) -> int:
        """Bytes of the budget that the cache does not get."""
        return _sum(self.budget)

    @property
    def beside(self) -> int:
        """Bytes of the lines outside the budget."""
        return _sum(self.outside)

    @property
    def fitted(self) -> int:
        """Bytes of the budget that rest on fitted constants, the weights' apart."""
        return _sum(
            draft
            for draft in self.budget
            if draft.confidence == "calibrated" and not draft.name.startswith("weights.")
        )

    @property
    def low(self) -> int:
        """The bytes left at the low end of the range."""
        less, _ = self.interval.ends(self.fitted)
        return requested_bytes(self.device.low, self.utilization) - self.spent - less

    @property
    def high(self) -> int:
        """The bytes left at the high end of the range: at most what no fitted memory leaves."""
        _, more = self.interval.ends(self.fitted - self.other)
        spent = self.spent - self.other
        return requested_bytes(self.device.high, self.utilization) - spent + more


def _sum(drafts: Iterable[Draft]) -> int:
    return sum(draft.value() for draft in drafts)


def rank_memory(rank: RankInputs) -> RankMemory:
    """All lines of one rank and what they leave for the cache."""
    band, covered = _calibration(rank)
    utilization = rank.settings.gpu_memory_utilization
    requested = requested_bytes(rank.device.total, utilization)
    outside = (_context(rank), *_nccl(rank), *occupied.lines(rank.used_by_others, "outside"))
    engine = (*outside, *_graphs(rank, band, _room(rank.device.total - requested, outside)))
    lines = (
        *_weights(rank),
        *activation_lines(_profile_run(rank), band),
        _non_torch(rank, band),
        *engine,
    )
    drafts = corrected(lines, rank.profile)
    budget = tuple(line for line in drafts if line.section == "budget")
    return RankMemory(
        device=rank.device,
        utilization=utilization,
        budget=budget,
        outside=tuple(line for line in drafts if line.section == "outside"),
        requested=requested,
        available=requested - _sum(budget),
        interval=band.interval,
        coverage=covered,
        other=_other_sampler(rank, budget),
    )


def _weights(rank: RankInputs) -> tuple[Draft, ...]:
    """What is loaded, and the room for adapters."""
    settings, at = rank.settings, rank.version
    lines = weight_lines(rank.model, rank.draft, rank.layout, dtype=rank.dtype, sm=rank.sm, at=at)
    size = DTYPE_BYTES[rank.dtype]
    room = adapters.weight_line(rank.model, rank.layout, settings, at, element_bytes=size)
    return (*towers.loaded(lines, settings.limit_mm_per_prompt, at), *room)


def _other_sampler(rank: RankInputs, budget: Iterable[Draft]) -> int:
    """What the peak would be smaller by."""
    other = other_bytes(rank.version, rank.vendor, v0=rank.rules.v0)
    if other is None:
        return 0
    return sum(
        max(0, line.value() - line.value({"logits_bytes": other}))
        for line in budget
        if "logits_bytes" in line.inputs
    )


def _calibration(rank: RankInputs) -> tuple[RuntimeBand, Coverage]:
    """The release's band, its ranges widened where no start like this one was measured."""
    band = nearest(rank.version, v0=rank.rules.v0)
    start = conditions(
        rank.model,
        rank.settings,
        tp=rank.layout.tp,
        pp=rank.world // rank.layout.tp,
        device=device_of(rank.vendor, rank.sm),
    )
    found = coverage(start, band, rank.version)
    return widened(band, found.factor), found


def _profile_run(rank: RankInputs) -> Run:
    return Run(
        model=rank.model,
        settings=rank.settings,
        layout=rank.layout,
        dtype=rank.dtype,
        context=rank.context,
        compiles=captured(rank.settings) > 0,
        v0=rank.rules.v0,
        version=rank.version,
        vendor=rank.vendor,
    )


def requested_bytes(total_bytes: int, utilization: float) -> int:
    """The budget: vLLM rounds up."""
    return Draft(
        "budget",
        "budget",
        BUDGET,
        {"total_bytes": total_bytes, "gpu_memory_utilization": utilization},
        source=SOURCE,
        confidence="exact",
    ).value()


BUDGET = "ceil(total_bytes * gpu_memory_utilization)"


def non_torch_constant(vendor: str, tp: int, sm: tuple[int, int]) -> str:
    """The name of the constant that memory past torch's allocator is taken from."""
    if vendor == "intel":
        return "non_torch_intel_gib"
    if tp == 1:
        return "non_torch_gib"
    return "non_torch_tp_gib" if sm[0] in _MULTICAST else "non_torch_tp_small_gib"


def _non_torch(rank: RankInputs, band: RuntimeBand) -> Draft:
    name = non_torch_constant(rank.vendor, rank.layout.tp, rank.sm)
    constants: Mapping[str, Range] = {
        "non_torch_intel_gib": band.non_torch_intel_gib,
        "non_torch_gib": band.non_torch_gib,
        "non_torch_tp_gib": band.non_torch_tp_gib,
        "non_torch_tp_small_gib": band.non_torch_tp_small_gib,
    }
    return gib_line("non_torch", "budget", constants[name], band.source)


def _room(beside_budget: int, lines: Iterable[Draft]) -> int:
    """What the lines outside the budget leave of the memory beside it."""
    return max(0, beside_budget - _sum(line for line in lines if line.section == "outside"))


def _graphs(rank: RankInputs, band: RuntimeBand, room_bytes: int) -> tuple[Draft, ...]:
    graphs = captured(rank.settings, adapters.graph_cases(rank.settings, rank.version))
    if not graphs:
        return ()
    inputs: Mapping[str, int | float] = {"graphs": graphs, "gib": GIB}
    in_budget = rank.rules.graphs_in_budget and estimates_graphs(
        rank.model, rank.version, rank.settings.speculative, vendor=rank.vendor
    )
    formula, section = "ceil(graphs * graph_gib * gib)", _section(in_budget)
    if section == "outside":
        # Outside the budget they take what capture finds there: a figure fitted on large cards
        # must not call a start impossible that a small one makes every day.
        inputs = {**inputs, "room_bytes": room_bytes}
        formula = f"min({formula}, room_bytes)"
    return (
        fitted(
            "cuda_graphs",
            section,
            formula,
            inputs,
            varied={"graph_gib": band.graph_gib},
            source=band.source,
        ),
    )


def _context(rank: RankInputs) -> Draft:
    section = _section(rank.rules.context_in_budget)
    return gib_line("cuda_context", section, runtime.CUDA_CONTEXT_GIB, runtime.OUTSIDE_SOURCE)


def _nccl(rank: RankInputs) -> tuple[Draft, ...]:
    if rank.world == 1:
        return ()
    section = _section(rank.rules.nccl_in_budget)
    return (gib_line("nccl", section, runtime.NCCL_GIB, runtime.OUTSIDE_SOURCE),)


def _section(in_budget: bool) -> Section:  # noqa: FBT001
    return "budget" if in_budget else "outside"
