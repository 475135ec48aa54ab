"""A prepared TensorRT-LLM configuration and a load → the engine's part of a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvplan.engines.base import Answer
from kvplan.engines.tensorrt_llm import blocks, ledgers, reasons
from kvplan.engines.tensorrt_llm.blocks import Share
from kvplan.plan import CacheGroup, Capacity, EnginePart, KvPart, Verdict

if TYPE_CHECKING:
    from kvplan.engines.tensorrt_llm.deployment import TensorRtDeployment


def build(deployment: TensorRtDeployment, context: int, concurrency: int | None) -> Answer:
    """The full answer for ``concurrency`` requests of ``context`` tokens."""
    given = deployment.ranks is None
    verdict = _verdict(deployment, context, concurrency)
    frame = deployment.frame
    assumed = frame.settings.assumed
    if frame.setup.gpu.sm is None:
        assumed = (*assumed, "compute_capability (that of an H100)")
    return Answer(
        verdict=verdict,
        reasons=reasons.collect(deployment, context, concurrency, verdict=verdict),
        engine=EnginePart(
            name="tensorrt-llm",
            version=frame.version,
            options=frame.settings.as_options()
            | {"kv_cache_dtype": frame.stored.name, "dtype": frame.dtype},
            assumed=assumed,
        ),
        parallelism=deployment.parallelism,
        context=context,
        ledger=ledgers.given_ledger(deployment) if given else ledgers.full_ledger(deployment),
        total_bytes=frame.device.total,
        total_source=frame.device.source,
        kv=_kv(deployment, context),
        capacity=_capacity(deployment, context),
    )


def _verdict(deployment: TensorRtDeployment, context: int, concurrency: int | None) -> Verdict:
    figures = deployment.figures(context)
    holds = concurrency is None or figures.requests >= concurrency
    return "fits" if figures.starts and holds else "does_not_fit"


def _kv(deployment: TensorRtDeployment, context: int) -> KvPart:
    sizing, stage = deployment.sizing, deployment.fullest
    pools = sizing.stages[stage]
    request = sum(
        blocks.request_blocks(sizing, pool.window, context) * sizing.block * pool.token_bytes
        for pool in pools
    )
    return KvPart(
        dtype=deployment.frame.stored.name,
        bytes_per_token=float(sum(p.token_bytes for p in pools if context <= p.window)),
        bytes_per_request=request,
        budget_bytes=deployment.shares[stage].estimated,
        budget_low=deployment.low[stage].estimated if deployment.low else None,
        budget_high=deployment.high[stage].estimated if deployment.high else None,
        allocated_bytes=blocks.allocated(sizing, deployment.blocks, stage),
    )


def _capacity(deployment: TensorRtDeployment, context: int) -> Capacity:
    figures, sizing = deployment.figures(context), deployment.sizing
    widest = [p for p in sizing.stages[deployment.fullest] if p.window == deployment.widest]
    return Capacity(
        blocks=figures.blocks,
        block_size=sizing.block,
        bytes_per_block=sizing.block * sum(pool.token_bytes for pool in widest),
        groups=tuple(_group(deployment, window, context) for window in sizing.windows),
        tokens=figures.tokens,
        tokens_low=_tokens(deployment, deployment.low),
        tokens_high=_tokens(deployment, deployment.high),
        max_concurrency=figures.max_concurrency,
        max_context=figures.max_context,
        requests=figures.requests,
    )


def _tokens(deployment: TensorRtDeployment, shares: tuple[Share, ...] | None) -> int | None:
    if shares is None:
        return None
    return deployment.tokens(blocks.solve(deployment.sizing, shares))


def _group(deployment: TensorRtDeployment, window: int, context: int) -> CacheGroup:
    sizing = deployment.sizing
    pools = [pool for stage in sizing.stages for pool in stage if pool.window == window]
    indices = tuple(index for pool in pools for index in pool.indices)
    whole = window == deployment.frame.settings.max_seq_len
    token_bytes = sum(pool.token_bytes for pool in pools)
    kept_whole = "latent" if any(pool.latent for pool in pools) else "full"
    return CacheGroup(
        kind=kept_whole if whole else "window",
        layers=len(indices),
        layer_indices=indices,
        page_bytes=sizing.block * token_bytes // len(indices),
        block_size=sizing.block,
        blocks_per_request=blocks.request_blocks(sizing, window, context),
        padding_bytes=0,
    )
