"""A prepared SGLang configuration and a load → the engine's part of a plan."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kvplan.engines.base import Answer
from kvplan.engines.sglang import ledgers, reasons, sizes
from kvplan.engines.sglang.layers import Part, Rows
from kvplan.plan import CacheGroup, Capacity, EnginePart, KvPart, Verdict

if TYPE_CHECKING:
    from kvplan.engines.sglang.deployment import SglangDeployment


def build(deployment: SglangDeployment, context: int, concurrency: int | None) -> Answer:
    """The full answer for ``concurrency`` requests of ``context`` tokens."""
    capacity = _capacity(deployment, context)
    given = deployment.ranks is None
    ledger = ledgers.given_ledger(deployment) if given else ledgers.full_ledger(deployment)
    verdict = _verdict(deployment, context, concurrency)
    return Answer(
        verdict=verdict,
        reasons=reasons.collect(deployment, context, concurrency, verdict=verdict),
        engine=_engine(deployment),
        parallelism=deployment.parallelism,
        context=context,
        ledger=ledger,
        total_bytes=deployment.frame.device.total,
        total_source=deployment.frame.device.source,
        kv=_kv(deployment, context),
        capacity=capacity,
    )


def _verdict(deployment: SglangDeployment, context: int, concurrency: int | None) -> Verdict:
    figures = deployment.figures(context)
    holds = concurrency is None or figures.requests >= concurrency
    return "fits" if figures.starts and holds else "does_not_fit"


def _kv(deployment: SglangDeployment, context: int) -> KvPart:
    sizing, stage = deployment.sizing, deployment.fullest
    return KvPart(
        dtype=deployment.frame.stored.name,
        bytes_per_token=_growth(deployment, context),
        bytes_per_request=_request_bytes(deployment, context),
        budget_bytes=deployment.available,
        budget_low=deployment.low,
        budget_high=deployment.high,
        allocated_bytes=sizes.allocated(sizing, deployment.sizes, stage),
    )


def _rows(deployment: SglangDeployment) -> tuple[Rows, int]:
    """The fullest rank's rows, and bytes of a token in the pool of all tokens, draft included."""
    sizing, stage = deployment.sizing, deployment.fullest
    rows = sizing.stages[stage]
    last = stage == len(sizing.stages) - 1
    return rows, rows.full_bytes + (sizing.draft_token_bytes if last else 0)


def _growth(deployment: SglangDeployment, context: int) -> float:
    rows, full = _rows(deployment)
    grows = context < deployment.sizing.live_window_tokens
    return float(full + (rows.window.token_bytes if grows else 0))


def _request_bytes(deployment: SglangDeployment, context: int) -> int:
    rows, full = _rows(deployment)
    need = sizes.need_of(deployment.sizing, context)
    tokens = need.pages * deployment.frame.page
    windows = need.window_tokens * rows.window.token_bytes
    return tokens * full + windows + need.slots * rows.slot_bytes


def _capacity(deployment: SglangDeployment, context: int) -> Capacity:
    figures = deployment.figures(context)
    fewest, most = deployment.token_range or (None, None)
    return Capacity(
        blocks=figures.blocks,
        block_size=deployment.frame.page,
        bytes_per_block=deployment.frame.page * _rows(deployment)[1],
        groups=tuple(_groups(deployment, context)),
        tokens=figures.tokens,
        tokens_low=fewest,
        tokens_high=most,
        max_concurrency=figures.max_concurrency,
        max_context=figures.max_context,
        requests=figures.requests,
    )


def _groups(deployment: SglangDeployment, context: int) -> Iterator[CacheGroup]:
    need, page = sizes.need_of(deployment.sizing, context), deployment.frame.page
    latent = any(rows.latent for rows in deployment.sizing.stages)
    pages = {"full": need.pages, "index": need.pages, "window": need.window_tokens // page}
    names = {"full": "latent" if latent else "full", "index": "indexer", "window": "window"}
    for name, kind in names.items():
        found = _over_stages(deployment, name)
        if found.indices:
            yield CacheGroup(
                kind=kind,
                layers=len(found.indices),
                layer_indices=found.indices,
                page_bytes=page * found.each,
                block_size=page,
                blocks_per_request=pages[name],
                padding_bytes=0,
            )
    states = tuple(index for rows in deployment.sizing.stages for index in rows.recurrent)
    if states:
        slot = sum(rows.slot_bytes for rows in deployment.sizing.stages)
        yield CacheGroup(
            kind="recurrent",
            layers=len(states),
            layer_indices=states,
            page_bytes=slot // len(states),
            block_size=context,
            blocks_per_request=need.slots,
            padding_bytes=0,
        )


def _over_stages(deployment: SglangDeployment, name: str) -> Part:
    parts: list[Part] = [getattr(rows, name) for rows in deployment.sizing.stages]
    indices = tuple(index for part in parts for index in part.indices)
    return Part(indices, max((part.each for part in parts), default=0))


def _engine(deployment: SglangDeployment) -> EnginePart:
    frame = deployment.frame
    assumed = frame.settings.assumed
    if frame.setup.gpu.sm is None:
        assumed = (*assumed, "compute_capability (that of an H100)")
    resolved = {
        "page_size": frame.page,
        "max_running_requests": deployment.sizes.requests * frame.settings.dp_size,
        "kv_cache_dtype": frame.stored.name,
        "dtype": frame.dtype,
        "context_length": frame.context,
    }
    given = frame.settings.as_options()
    filled = [name for name in ("page_size", "max_running_requests") if name not in given]
    return EnginePart(
        name="sglang",
        version=frame.version,
        options=given | resolved,
        assumed=tuple(dict.fromkeys((*assumed, *filled))),
    )
