"""One rank's memory as ledger lines, and the bytes that remain for the cache.

available = ceil(total × utilization) - weights - activation peak - non-torch - CUDA graphs.
Source: vLLM 0.33.0, determine_available_memory in vllm/v1/worker/gpu_worker.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from kvplan.engines import runtime
from kvplan.engines.base import Version
from kvplan.engines.vllm.history import Rules
from kvplan.engines.vllm.loaded import loaded_lines
from kvplan.engines.vllm.settings import Settings
from kvplan.hardware import DeviceMemory
from kvplan.ledger import Confidence, Draft, Section
from kvplan.models.formats import DTYPE_BYTES, PLAIN, Dtype, ceil_div
from kvplan.models.identity import ById
from kvplan.models.spec import ModelSpec
from kvplan.models.weights import RankLayout, RankPart, rank_parts
from kvplan.units import GIB

SOURCE = "vLLM 0.33.0, vllm/v1/worker/gpu_worker.py determine_available_memory"
_PROFILE = "vLLM profile run: max_num_batched_tokens tokens, max_num_seqs sampled requests"


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


@dataclass(frozen=True, slots=True)
class RankMemory:
    """One rank, before the pool is cut.

    Attributes:
        budget: Lines inside the budget.
        outside: Lines beside it.
        requested: The whole budget in bytes.
        available: Bytes left for the cache; may be negative.
    """

    device: DeviceMemory
    utilization: float
    budget: tuple[Draft, ...]
    outside: tuple[Draft, ...]
    requested: int
    available: int

    @property
    def spent(self) -> int:
        """Bytes of the budget that the cache does not get."""
        return sum(draft.value() for draft in self.budget)

    @property
    def beside(self) -> int:
        """Bytes of the lines outside the budget."""
        return sum(draft.value() for draft in self.outside)

    @property
    def low(self) -> int:
        """The bytes left if every line of the budget is at its high end."""
        spent = sum(draft.value(draft.high) for draft in self.budget)
        return requested_bytes(self.device.low, self.utilization) - spent

    @property
    def high(self) -> int:
        """The bytes left if every line of the budget is at its low end."""
        spent = sum(draft.value(draft.low) for draft in self.budget)
        return requested_bytes(self.device.high, self.utilization) - spent


def rank_memory(rank: RankInputs) -> RankMemory:
    """All lines of one rank and what they leave for the cache."""
    band = runtime.vllm_band(rank.version)
    nccl = _nccl(rank)
    utilization = rank.settings.gpu_memory_utilization
    requested = requested_bytes(rank.device.total, utilization)
    graphs = _graphs(rank, band, rank.device.total - requested)
    in_budget = (graphs if rank.rules.graphs_in_budget else ()) + (
        nccl if rank.rules.nccl_in_budget else ()
    )
    budget = (*_weights(rank), _activation(rank, band), _non_torch(rank, band), *in_budget)
    beside = (_context(), *nccl, *graphs)
    return RankMemory(
        device=rank.device,
        utilization=utilization,
        budget=budget,
        outside=tuple(draft for draft in beside if draft not in in_budget),
        requested=requested,
        available=requested - sum(draft.value() for draft in budget),
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


def _weights(rank: RankInputs) -> tuple[Draft, ...]:
    model = rank.model
    parts = rank_parts(model.weights, PLAIN[rank.dtype], rank.layout, tied=model.tied_embeddings)
    checkpoint = model.checkpoint
    if checkpoint is not None and checkpoint.bytes_by_dtype:
        lines = _weight_lines(ById(parts), checkpoint.source, "exact")
    else:
        lines = _weight_lines(ById(parts), model.source, "derived")
    return lines + loaded_lines(
        model,
        element_bytes=DTYPE_BYTES[rank.dtype],
        layout=rank.layout,
        sm=rank.sm,
        at=rank.version,
    )


@lru_cache(maxsize=1024)
def _weight_lines(
    parts: ById[tuple[RankPart, ...]], source: str, confidence: Confidence
) -> tuple[Draft, ...]:
    by_component: dict[str, list[RankPart]] = {}
    for part in parts.value:
        by_component.setdefault(part.component, []).append(part)
    return tuple(
        _weight_line(component, held, source, confidence)
        for component, held in by_component.items()
    )


def _weight_line(
    component: str, parts: list[RankPart], source: str, confidence: Confidence
) -> Draft:
    terms: list[str] = []
    inputs: dict[str, int | float] = {}
    seen: Counter[str] = Counter()
    for part in parts:
        name = identifier(part.format)
        seen[name] += 1
        if seen[name] > 1:  # formats of one name may differ in bits or groups
            name = f"{name}_{seen[name]}"
        if part.bytes_per_element is None:
            inputs[f"packed_{name}_bytes"] = part.bytes
            terms.append(f"packed_{name}_bytes")
        else:
            inputs[f"elements_{name}"] = part.elements
            inputs[f"bytes_{name}"] = part.bytes_per_element
            terms.append(f"elements_{name} * bytes_{name}")
    return Draft(
        f"weights.{component}",
        "budget",
        " + ".join(terms),
        inputs,
        source=source,
        confidence=confidence,
    )


def identifier(name: str) -> str:
    """A name as formulas can hold it."""
    return "".join(c if c.isascii() and c.isalnum() else "_" for c in name.lower())


def _fitted(
    name: str,
    section: Section,
    formula: str,
    inputs: Mapping[str, int | float],
    *,
    varied: Mapping[str, runtime.Range],
    source: str,
) -> Draft:
    """A line whose constants are ranges."""
    return Draft(
        name,
        section,
        formula,
        {**inputs, **{key: fitted.value for key, fitted in varied.items()}},
        source=source,
        confidence="calibrated",
        low={key: fitted.low for key, fitted in varied.items()},
        high={key: fitted.high for key, fitted in varied.items()},
    )


def _activation(rank: RankInputs, band: runtime.RuntimeBand) -> Draft:
    """The larger of the profile run's two phases. Only the last stage samples."""
    model, settings = rank.model, rank.settings
    width = model.intermediate_size * max(1, model.experts_per_token)
    inputs: dict[str, int | float] = {
        "tokens": settings.max_num_batched_tokens,
        "hidden": model.hidden_size,
        "intermediate": ceil_div(width, rank.layout.tp),
    }
    formula = "tokens * layer_bytes * (hidden + intermediate)"
    varied = {"layer_bytes": band.layer_bytes}
    if rank.layout.last:
        inputs |= {"requests": settings.max_num_seqs, "vocab": model.vocab_size}
        formula = f"max({formula}, requests * vocab * logits_bytes)"
        varied["logits_bytes"] = band.logits_bytes
    if model.experts or any(cache.kind == "latent" for cache in model.caches):
        inputs["gib"] = GIB
        formula = f"{formula} + workspace_gib * gib"
        varied["workspace_gib"] = band.workspace_gib
    return _fitted(
        "activation_peak",
        "budget",
        f"ceil({formula})",
        inputs,
        varied=varied,
        source=f"{_PROFILE}; {band.source}",
    )


def _gib_line(name: str, section: Section, fitted: runtime.Range, source: str) -> Draft:
    key = f"{name}_gib"
    return _fitted(
        name, section, f"ceil({key} * gib)", {"gib": GIB}, varied={key: fitted}, source=source
    )


def _non_torch(rank: RankInputs, band: runtime.RuntimeBand) -> Draft:
    multicast = rank.sm[0] in (9, 10)
    if rank.layout.tp == 1:
        fitted = band.non_torch_gib
    else:
        fitted = band.non_torch_tp_gib if multicast else band.non_torch_tp_small_gib
    return _gib_line("non_torch", "budget", fitted, band.source)


def _graphs(rank: RankInputs, band: runtime.RuntimeBand, beside_budget: int) -> tuple[Draft, ...]:
    if rank.settings.enforce_eager:
        return ()
    if rank.rules.graphs_in_budget:
        return (_gib_line("cuda_graphs", "budget", band.graphs_gib, band.source),)
    # Outside the budget they take what capture finds there: a figure fitted on large cards must
    # not call a start impossible that a small one makes every day.
    taken = (_context(), *(() if rank.rules.nccl_in_budget else _nccl(rank)))
    room = max(0, beside_budget - sum(draft.value() for draft in taken))
    return (
        _fitted(
            "cuda_graphs",
            "outside",
            "min(ceil(cuda_graphs_gib * gib), room_bytes)",
            {"gib": GIB, "room_bytes": room},
            varied={"cuda_graphs_gib": band.graphs_gib},
            source=band.source,
        ),
    )


def _context() -> Draft:
    source = runtime.OUTSIDE_SOURCE
    return _gib_line("cuda_context", "outside", runtime.CUDA_CONTEXT_GIB, source)


def _nccl(rank: RankInputs) -> tuple[Draft, ...]:
    if rank.world == 1:
        return ()
    section: Section = "budget" if rank.rules.nccl_in_budget else "outside"
    return (_gib_line("nccl", section, runtime.NCCL_GIB, runtime.OUTSIDE_SOURCE),)
