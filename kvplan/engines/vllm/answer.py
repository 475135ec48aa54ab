"""A prepared vLLM configuration and a load → the engine's part of a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvplan.engines.base import Answer
from kvplan.engines.vllm import ledgers, reasons
from kvplan.engines.vllm.groups import Group
from kvplan.ledger import LedgerLine
from kvplan.plan import CacheGroup, Capacity, EnginePart, GroupPage, KvPart, Verdict

if TYPE_CHECKING:
    from kvplan.engines.vllm.deployment import VllmDeployment


def build(deployment: VllmDeployment, context: int, concurrency: int | None) -> Answer:
    """The full answer for ``concurrency`` requests of ``context`` tokens."""
    kv = _kv(deployment, context)
    capacity = _capacity(deployment, context)
    ledger = _ledger(deployment, capacity)
    verdict = _verdict(deployment, context, concurrency)
    return Answer(
        verdict=verdict,
        reasons=reasons.collect(
            deployment, context, concurrency, verdict=verdict, capacity=capacity, ledger=ledger
        ),
        engine=_engine(deployment),
        parallelism=deployment.parallelism,
        context=context,
        ledger=ledger,
        total_bytes=deployment.device.total,
        total_source=deployment.device.source,
        kv=kv,
        capacity=capacity,
    )


def _verdict(deployment: VllmDeployment, context: int, concurrency: int | None) -> Verdict:
    figures = deployment.figures(context)
    holds = concurrency is None or figures.requests >= concurrency
    return "fits" if figures.starts and holds else "does_not_fit"


def _kv(deployment: VllmDeployment, context: int) -> KvPart:
    stage = deployment.fullest
    block_bytes = deployment.pool.stage_block_bytes[stage]
    return KvPart(
        dtype=deployment.kv_dtype,
        bytes_per_token=deployment.pool.growth(context, stage),
        bytes_per_request=deployment.pool.request_blocks(context) * block_bytes,
        budget_bytes=deployment.available[stage],
        budget_low=deployment.low[stage] if deployment.low else None,
        budget_high=deployment.high[stage] if deployment.high else None,
        allocated_bytes=deployment.blocks * block_bytes,
    )


def _capacity(deployment: VllmDeployment, context: int) -> Capacity:
    pool = deployment.pool
    stage = deployment.fullest
    figures = deployment.figures(context)
    block_bytes = pool.stage_block_bytes[stage]
    return Capacity(
        blocks=figures.blocks,
        block_size=min(group.page.block_size for group in pool.groups),
        bytes_per_block=block_bytes,
        groups=tuple(
            CacheGroup(
                kind=group.page.kind,
                layers=group.layers,
                layer_indices=group.indices,
                page_bytes=group.page.page_bytes,
                pages=_pages(group),
                block_size=group.page.block_size,
                blocks_per_request=pool.group_blocks(group, context),
                padding_bytes=block_bytes - group.stage_used[stage],
            )
            for group in pool.groups
        ),
        tokens=figures.tokens,
        tokens_low=_tokens(deployment, deployment.low, context),
        tokens_high=_tokens(deployment, deployment.high, context),
        max_concurrency=figures.max_concurrency,
        max_context=figures.max_context,
        requests=figures.requests,
    )


def _pages(group: Group) -> tuple[GroupPage, ...]:
    """The group's shares of a block where its layers differ."""
    if len(group.pages) == 1:
        return ()
    return tuple(
        GroupPage(kind=page.kind, layers=layers, page_bytes=page.page_bytes)
        for page, layers in group.pages
    )


def _tokens(
    deployment: VllmDeployment, available: tuple[int, ...] | None, context: int
) -> int | None:
    if available is None:
        return None
    return deployment.pool.tokens(deployment.pool.blocks(available), context)


def _ledger(deployment: VllmDeployment, capacity: Capacity) -> tuple[LedgerLine, ...]:
    stage, pool = deployment.fullest, deployment.pool
    low, high = deployment.low, deployment.high
    cut = ledgers.Cut(
        blocks=capacity.blocks,
        bytes_per_block=capacity.bytes_per_block,
        low=pool.blocks(low) if low else capacity.blocks,
        high=pool.blocks(high) if high else capacity.blocks,
    )
    if deployment.stages is None:
        return ledgers.given_ledger(deployment.available[stage], cut)
    if deployment.settings.kv_cache_memory_bytes is not None:
        return ledgers.fixed_pool_ledger(deployment.stages[stage], cut)
    return ledgers.full_ledger(deployment.stages[stage], cut)


def _engine(deployment: VllmDeployment) -> EnginePart:
    assumed = deployment.settings.assumed
    if deployment.setup.gpu.sm is None:
        assumed = (*assumed, "compute_capability (that of an H100)")
    return EnginePart(
        name="vllm",
        version=deployment.version,
        options=deployment.settings.as_options()
        | {"kv_cache_dtype": deployment.kv_dtype, "dtype": deployment.dtype},
        assumed=assumed,
    )
