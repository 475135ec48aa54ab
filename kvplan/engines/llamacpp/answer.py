"""A prepared llama.cpp configuration and a load → the engine's part of a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvplan.engines.base import Answer
from kvplan.engines.llamacpp import context as contexts
from kvplan.engines.llamacpp import reasons
from kvplan.engines.llamacpp.allocation import Allocation, End, Load
from kvplan.engines.llamacpp.caches import LayerStore
from kvplan.engines.llamacpp.context import Context, context_of
from kvplan.engines.llamacpp.ledgers import alike, ledger_of
from kvplan.engines.llamacpp.shortages import Asked
from kvplan.plan import (
    CacheGroup,
    Capacity,
    DevicePart,
    EnginePart,
    KvPart,
    Parallelism,
    Verdict,
)

if TYPE_CHECKING:
    from kvplan.engines.llamacpp.deployment import LlamaCppDeployment

BLOCK = contexts.STEP
"""Cells that a context grows by: llama.cpp has no smaller unit, and no pages."""

_ENDS: tuple[End, End] = ("low", "high")


def build(deployment: LlamaCppDeployment, context: int, concurrency: int | None) -> Answer:
    """The full answer for ``concurrency`` requests of ``context`` tokens."""
    sequences = deployment.slots(context, concurrency)
    asked, context = context, deployment.length(context, sequences)
    start = deployment.allocation(deployment.requested(context, sequences), sequences)
    fullest = start.fullest
    capacity = _capacity(deployment, start, context)
    verdict = _verdict(start, capacity, concurrency)
    return Answer(
        verdict=verdict,
        reasons=reasons.collect(
            deployment,
            start,
            Asked(context=asked, concurrency=concurrency),
            verdict=verdict,
            capacity=capacity,
        ),
        engine=_engine(deployment, start),
        parallelism=_parallelism(deployment),
        context=context,
        ledger=ledger_of(fullest),
        total_bytes=fullest.device.memory.total if fullest.device.memory else 0,
        total_source=fullest.device.memory.source if fullest.device.memory else "not stated",
        kv=_kv(deployment, fullest, context),
        capacity=capacity,
        devices=tuple(map(_device, start.loads)),
    )


def _verdict(start: Allocation, capacity: Capacity, concurrency: int | None) -> Verdict:
    holds = concurrency is None or capacity.requests >= concurrency
    return "fits" if start.fits and holds else "does_not_fit"


def _one(deployment: LlamaCppDeployment, context: int) -> Context:
    """A context of one sequence."""
    settings = deployment.settings
    return context_of(
        context, 1, unified=True, n_batch=settings.n_batch, n_ubatch=settings.n_ubatch
    )


def _stores(load: Load) -> tuple[LayerStore, ...]:
    return tuple(store for share in load.shares for store in share.stores)


def _kv(deployment: LlamaCppDeployment, load: Load, context: int) -> KvPart:
    settings, one = deployment.settings, _one(deployment, context)
    stores, full = _stores(load), settings.swa_full
    types = (settings.cache_type_k, settings.cache_type_v)
    return KvPart(
        dtype=types[0] if types[0] == types[1] else "/".join(types),
        bytes_per_token=float(
            sum(
                store.k_row + store.v_row
                for store in stores
                if store.cells(one, swa_full=full) == one.n_ctx_seq
            )
        ),
        bytes_per_request=sum(store.bytes(one, swa_full=full) for store in stores),
        budget_bytes=load.room() or load.cache_bytes,
        budget_low=None if load.budget is not None else load.room("low"),
        budget_high=None if load.budget is not None else load.room("high"),
        allocated_bytes=load.cache_bytes,
    )


def _capacity(deployment: LlamaCppDeployment, start: Allocation, context: int) -> Capacity:
    """What the start holds, or the memory where nobody says how many slots there are."""
    stores, sequences = _stores(start.fullest), start.context.sequences
    held = deployment.held(context, sequences)
    tokens = deployment.tokens(start, context, held)
    low, high = (_at_end(deployment, start, context, end) for end in _ENDS)
    one = _one(deployment, context)
    return Capacity(
        blocks=tokens // BLOCK,
        block_size=BLOCK,
        bytes_per_block=BLOCK * sum(s.k_row + s.v_row for s in stores if s.window is None),
        groups=tuple(_group(group, one, deployment) for group in alike(deployment.body.stores)),
        tokens=tokens,
        tokens_low=low,
        tokens_high=high,
        max_concurrency=tokens / context,
        max_context=_longest(deployment, start, deployment.longest_context()),
        requests=held * deployment.setup.parallelism.dp,
    )


def _at_end(
    deployment: LlamaCppDeployment, start: Allocation, context: int, end: End
) -> int | None:
    """Tokens at one end of what the memory may hold; None where the start says how many."""
    if not deployment.open_ended or deployment.setup.kv_budget is not None:
        return None
    held = deployment.held(context, start.context.sequences, end)
    return deployment.tokens(start, context, held)


def _longest(deployment: LlamaCppDeployment, start: Allocation, alone: int) -> int:
    """A server whose n_ctx is given holds no longer request than its slots are."""
    fixed = deployment.settings.n_ctx is not None and start.fits
    return start.context.n_ctx_seq if fixed else alone


def _group(
    stores: tuple[LayerStore, ...], one: Context, deployment: LlamaCppDeployment
) -> CacheGroup:
    first = stores[0]
    recurrent = first.kind == "recurrent"
    cells = first.cells(one, swa_full=deployment.settings.swa_full)
    state = first.inputs + first.state
    return CacheGroup(
        kind=first.kind,
        layers=len(stores),
        layer_indices=tuple(store.layer for store in stores),
        page_bytes=state if recurrent else BLOCK * (first.k_row + first.v_row),
        block_size=1 if recurrent else BLOCK,
        blocks_per_request=1 if recurrent else cells // BLOCK,
        padding_bytes=0,
    )


def _device(load: Load) -> DevicePart:
    memory = load.device.memory
    return DevicePart(
        name=load.device.name,
        id=load.device.id,
        layers=load.layers,
        weights_bytes=load.weight_bytes,
        cache_bytes=load.cache_bytes,
        compute_bytes=load.compute_bytes,
        process_bytes=load.device.runtime[0],
        others_bytes=load.device.in_use,
        total_bytes=memory.total if memory else None,
        left_bytes=load.left,
    )


def _engine(deployment: LlamaCppDeployment, start: Allocation) -> EnginePart:
    chosen = {
        "n_ctx": start.context.n_ctx,
        "n_seq_max": start.context.sequences,
        "n_ubatch": start.context.n_ubatch,
        "n_gpu_layers": start.placement.on_gpus,
    }
    settings = deployment.settings
    assumed = settings.assumed
    assumed += tuple(name for name in ("n_ctx", "n_seq_max") if getattr(settings, name) is None)
    if start.experts_on_host and not settings.cpu_moe:
        chosen["n_cpu_moe"] = len(start.experts_on_host)
    wording = deployment.wording
    if wording.options:
        return EnginePart(
            name=wording.name,
            version=deployment.version,
            options=dict(wording.options) | chosen,
            assumed=wording.assumed,
        )
    return EnginePart(
        name=wording.name,
        version=deployment.version,
        options=settings.as_options() | chosen,
        assumed=assumed,
    )


def _parallelism(deployment: LlamaCppDeployment) -> Parallelism:
    """Stages are GPUs: their number may come from tensor_split or from unlike GPUs."""
    gpus = max(1, len(deployment.machine.gpus))
    return deployment.setup.parallelism.model_copy(update={"pp": gpus})
