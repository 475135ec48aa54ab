"""One rank's memory as ledger lines, and the bytes that remain for the cache.

available = ceil(total × utilization) - weights - activation peak - non-torch - CUDA graphs.
Source: vLLM 0.33.0, determine_available_memory in vllm/v1/worker/gpu_worker.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kvplan.engines import runtime
from kvplan.engines.base import Version
from kvplan.engines.vllm.history import Rules
from kvplan.engines.vllm.settings import Settings
from kvplan.hardware import DeviceMemory
from kvplan.ledger import Confidence, LedgerLine, Section, ledger_line
from kvplan.models.caches import LatentCache
from kvplan.models.formats import PLAIN, Dtype, ceil_div
from kvplan.models.spec import ModelSpec
from kvplan.models.weights import RankLayout, RankPart, rank_parts
from kvplan.units import GIB

_MEMORY = "vLLM 0.33.0, vllm/v1/worker/gpu_worker.py determine_available_memory"
_PROFILE = "vLLM profile run: max_num_batched_tokens tokens, max_num_seqs sampled requests"


@dataclass(frozen=True, slots=True)
class RankMemory:
    """One rank, before the pool is cut.

    Attributes:
        budget: Lines inside the budget. outside: lines beside it.
        requested: The whole budget in bytes.
        available, low, high: Bytes left for the cache; may be negative.
    """

    device: DeviceMemory
    utilization: float
    budget: tuple[LedgerLine, ...]
    outside: tuple[LedgerLine, ...]
    requested: int
    available: int
    low: int
    high: int


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


def rank_memory(rank: RankInputs) -> RankMemory:
    """All lines of one rank and what they leave for the cache."""
    band = runtime.vllm_band(rank.version)
    graphs = _graphs(rank, band)
    budget = (*_weights(rank), _activation(rank, band), _non_torch(rank, band))
    outside = (_context(), *_nccl(rank))
    if rank.rules.graphs_in_budget:
        budget = (*budget, *graphs)
    else:
        outside = (*outside, *graphs)
    if rank.rules.nccl_in_budget:
        budget, outside = (
            (*budget, *_nccl(rank)),
            tuple(line for line in outside if line.name != "nccl"),
        )
    utilization = rank.settings.gpu_memory_utilization
    requested = _requested(rank.device.total, utilization)
    spent = sum(line.bytes for line in budget)
    return RankMemory(
        device=rank.device,
        utilization=utilization,
        budget=budget,
        outside=outside,
        requested=requested,
        available=requested - spent,
        low=_requested(rank.device.low, utilization) - sum(line.high for line in budget),
        high=_requested(rank.device.high, utilization) - sum(line.low for line in budget),
    )


def _requested(total_bytes: int, utilization: float) -> int:
    line = ledger_line(
        "budget",
        "budget",
        "ceil(total_bytes * gpu_memory_utilization)",
        {"total_bytes": total_bytes, "gpu_memory_utilization": utilization},
        source=_MEMORY,
        confidence="exact",
    )
    return line.bytes


def _weights(rank: RankInputs) -> list[LedgerLine]:
    model = rank.model
    parts = rank_parts(model.weights, PLAIN[rank.dtype], rank.layout, tied=model.tied_embeddings)
    exact = model.checkpoint is not None and bool(model.checkpoint.bytes_by_dtype)
    source = model.checkpoint.source if exact and model.checkpoint else model.source
    by_component: dict[str, list[RankPart]] = {}
    for part in parts:
        by_component.setdefault(part.component, []).append(part)
    return [
        _weight_line(component, held, source, "exact" if exact else "derived")
        for component, held in by_component.items()
    ]


def _weight_line(
    component: str, parts: list[RankPart], source: str, confidence: Confidence
) -> LedgerLine:
    terms: list[str] = []
    inputs: dict[str, int | float] = {}
    for part in parts:
        name = "".join(c if c.isalnum() else "_" for c in part.format.lower())
        if part.bytes_per_element is None:
            inputs[f"packed_{name}_bytes"] = part.bytes
            terms.append(f"packed_{name}_bytes")
        else:
            inputs[f"{name}_elements"] = part.elements
            inputs[f"bytes_per_{name}"] = part.bytes_per_element
            terms.append(f"{name}_elements * bytes_per_{name}")
    return ledger_line(
        f"weights.{component}",
        "budget",
        " + ".join(terms),
        inputs,
        source=source,
        confidence=confidence,
    )


def _fitted(
    name: str,
    section: Section,
    formula: str,
    inputs: Mapping[str, int | float],
    *,
    varied: Mapping[str, runtime.Range],
    source: str,
) -> LedgerLine:
    """A line whose constants are ranges: computed at the value, the low and the high end."""

    def at(end: Mapping[str, float]) -> LedgerLine:
        return ledger_line(
            name, section, formula, {**inputs, **end}, source=source, confidence="calibrated"
        )

    line = at({key: fitted.value for key, fitted in varied.items()})
    low = at({key: fitted.low for key, fitted in varied.items()}).bytes
    high = at({key: fitted.high for key, fitted in varied.items()}).bytes
    return line.model_copy(update={"low": low, "high": high})


def _activation(rank: RankInputs, band: runtime.RuntimeBand) -> LedgerLine:
    """The larger of the profile run's two phases. Only the last stage samples."""
    model, settings, tp = rank.model, rank.settings, rank.layout.tp
    inputs: dict[str, int | float] = {
        "tokens": settings.max_num_batched_tokens,
        "hidden": model.hidden_size,
        "intermediate": ceil_div(model.intermediate_size * max(1, model.experts_per_token), tp),
    }
    formula = "ceil(tokens * layer_bytes * (hidden + intermediate))"
    varied = {"layer_bytes": band.layer_bytes}
    if rank.layout.last:
        inputs |= {"requests": settings.max_num_seqs, "vocab": model.vocab_size}
        formula = (
            "ceil(max(tokens * layer_bytes * (hidden + intermediate), "
            "requests * vocab * logits_bytes))"
        )
        varied["logits_bytes"] = band.logits_bytes
    if model.experts or _has_latent(model):
        inputs["gib"] = GIB
        formula = formula.replace("ceil(", "ceil(workspace_gib * gib + ", 1)
        varied["workspace_gib"] = band.workspace_gib
    source = f"{_PROFILE}; {band.source}"
    return _fitted("activation_peak", "budget", formula, inputs, varied=varied, source=source)


def _has_latent(model: ModelSpec) -> bool:
    return any(isinstance(c, LatentCache) for layer in model.layers for c in layer.caches)


def _gib_line(name: str, section: Section, fitted: runtime.Range, source: str) -> LedgerLine:
    key = f"{name}_gib"
    return _fitted(
        name, section, f"ceil({key} * gib)", {"gib": GIB}, varied={key: fitted}, source=source
    )


def _non_torch(rank: RankInputs, band: runtime.RuntimeBand) -> LedgerLine:
    multicast = rank.sm[0] in (9, 10)
    if rank.layout.tp == 1:
        fitted = band.non_torch_gib
    else:
        fitted = band.non_torch_tp_gib if multicast else band.non_torch_tp_small_gib
    return _gib_line("non_torch", "budget", fitted, band.source)


def _graphs(rank: RankInputs, band: runtime.RuntimeBand) -> tuple[LedgerLine, ...]:
    if rank.settings.enforce_eager:
        return ()
    section: Section = "budget" if rank.rules.graphs_in_budget else "outside"
    return (_gib_line("cuda_graphs", section, band.graphs_gib, band.source),)


def _context() -> LedgerLine:
    source = runtime.OUTSIDE_SOURCE
    return _gib_line("cuda_context", "outside", runtime.CUDA_CONTEXT_GIB, source)


def _nccl(rank: RankInputs) -> tuple[LedgerLine, ...]:
    if rank.world == 1:
        return ()
    section: Section = "budget" if rank.rules.nccl_in_budget else "outside"
    return (_gib_line("nccl", section, runtime.NCCL_GIB, runtime.OUTSIDE_SOURCE),)


def full_ledger(memory: RankMemory, *, blocks: int, bytes_per_block: int) -> tuple[LedgerLine, ...]:
    """All lines of the rank; they sum to the device's memory."""
    pool = pool_line(blocks, bytes_per_block)
    spent = {_input(line.name): line.bytes for line in memory.budget}
    total_inputs = {
        "total_bytes": memory.device.total,
        "gpu_memory_utilization": memory.utilization,
    }
    rest = ledger_line(
        "budget_rest",
        "free",
        "ceil(total_bytes * gpu_memory_utilization) - kv_cache - " + " - ".join(spent),
        {**total_inputs, "kv_cache": pool.bytes, **spent},
        source=f"{_MEMORY}: what is less than one block",
        confidence="derived",
    )
    beside = {_input(line.name): line.bytes for line in memory.outside}
    unused = ledger_line(
        "outside_unused",
        "outside",
        "total_bytes - ceil(total_bytes * gpu_memory_utilization)"
        + "".join(f" - {name}" for name in beside),
        {**total_inputs, **beside},
        source="what the utilization leaves to other processes and late allocations",
        confidence="derived",
    )
    return (*memory.budget, pool, rest, *memory.outside, unused)


def _input(name: str) -> str:
    return name.replace(".", "_")


def pool_line(blocks: int, bytes_per_block: int) -> LedgerLine:
    """The cache itself: whole blocks."""
    return ledger_line(
        "kv_cache",
        "pool",
        "blocks * bytes_per_block",
        {"blocks": blocks, "bytes_per_block": bytes_per_block},
        source="vLLM 0.33.0, vllm/v1/core/kv_cache_utils.py",
        confidence="derived",
    )


def given_ledger(budget: int, *, blocks: int, bytes_per_block: int) -> tuple[LedgerLine, ...]:
    """The ledger of a pool whose bytes were given: the blocks and what is less than one."""
    pool = pool_line(blocks, bytes_per_block)
    rest = ledger_line(
        "budget_rest",
        "free",
        "kv_budget - kv_cache",
        {"kv_budget": budget, "kv_cache": pool.bytes},
        source="given",
        confidence="exact",
    )
    return (pool.model_copy(update={"confidence": "exact"}), rest)


def fixed_pool_ledger(
    memory: RankMemory, *, blocks: int, bytes_per_block: int
) -> tuple[LedgerLine, ...]:
    """The ledger under kv_cache_memory_bytes: no utilization, the pool is as large as was said."""
    pool = pool_line(blocks, bytes_per_block)
    lines = (*memory.budget, pool, *memory.outside)
    spent = {_input(line.name): line.bytes for line in lines}
    rest = ledger_line(
        "unused",
        "free",
        "total_bytes - " + " - ".join(spent),
        {"total_bytes": memory.device.total, **spent},
        source="kv_cache_memory_bytes bypasses the utilization",
        confidence="derived",
    )
    return (*lines, rest)
