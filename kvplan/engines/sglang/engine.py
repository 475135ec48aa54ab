"""SGLang as the planner sees it: frame → rows → memory → pools → answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kvplan.engines.base import DraftRequest, Setup
from kvplan.engines.sglang import drafts, history, layers, memory, sizes, weights
from kvplan.engines.sglang.deployment import SglangDeployment
from kvplan.engines.sglang.frame import UNSTATED_CONTEXT, Frame, frame_of, is_latent
from kvplan.errors import EngineRefusesError, NotModelledError, UsageError
from kvplan.models.caches import RecurrentCache
from kvplan.models.spec import ModelSpec
from kvplan.plan import Parallelism

NAME = "sglang"
_NO_CHUNKS = -1


class Sglang:
    """The engine."""

    name = NAME
    newest = history.NEWEST
    unstated_context: int | None = UNSTATED_CONTEXT

    def draft_of(self, options: Mapping[str, Any]) -> DraftRequest | None:
        """The draft that ``speculative_algorithm`` asks for.

        Raises:
            KvplanError: see `kvplan.engines.base.Engine`.
        """
        return drafts.requested(options)

    def prepare(self, setup: Setup) -> SglangDeployment:
        """Works out rows, memory and pools.

        Raises:
            EngineRefusesError, NotModelledError, UsageError: see `kvplan.engines.base.Engine`.
        """
        frame = frame_of(setup)
        _check(frame)
        stages = layers.pipeline_stages(len(setup.model.layers), setup.parallelism.pp)
        sizing = _sizing(frame, stages)
        ranks = _ranks(frame, stages)
        return SglangDeployment(
            frame=frame,
            parallelism=_with_experts(frame),
            sizing=sizing,
            ranks=ranks,
            available=_available(frame, ranks),
            uneven=ranks is not None and memory.is_uneven(frame, ranks[0].idle.free),
        )


def _check(frame: Frame) -> None:
    model, spread = frame.setup.model, frame.setup.parallelism
    if spread.dcp > 1:
        raise NotModelledError(
            "kvplan does not model decode context parallelism in SGLang.", hint="Leave out --dcp."
        )
    layers.check_heads(model, frame.attention_tp, groups=frame.settings.dp_size)
    drafts.check_draft(frame)
    if frame.setup.draft is not None:
        layers.check_heads(frame.setup.draft, frame.attention_tp, groups=frame.settings.dp_size)
    recurrent = any(isinstance(cache, RecurrentCache) for cache in model.caches)
    if recurrent and not frame.rules.hybrids:
        raise NotModelledError(
            f"kvplan does not model recurrent states in SGLang {frame.version}.",
            hint="Plan for 0.5.9 or later.",
        )
    if recurrent and not frame.rules.stateless and not _has_attention(model):
        raise EngineRefusesError(
            f"SGLang {frame.version} serves no model without attention.",
            hint="Plan for 0.5.18 or later.",
        )


def _has_attention(model: ModelSpec) -> bool:
    headed = any(isinstance(cache, layers.HEADED) for cache in model.caches)
    return headed or is_latent(model)


def _with_experts(frame: Frame) -> Parallelism:
    ep = frame.settings.ep_size if frame.setup.model.experts else 1
    return frame.setup.parallelism.model_copy(update={"ep": ep})


def _splits_windows(frame: Frame) -> bool:
    named = frame.setup.model.architecture in frame.rules.windows
    local = any(isinstance(cache, layers.LOCAL) for cache in frame.setup.model.caches)
    return named and local and not frame.settings.disable_hybrid_swa_memory


def _sizing(frame: Frame, stages: tuple[layers.Stage, ...]) -> sizes.Sizing:
    settings, groups = frame.settings, frame.settings.dp_size
    split = _splits_windows(frame)
    asked = settings.max_running_requests
    context = layers.RowContext(
        stored=frame.stored,
        tp=frame.attention_tp,
        split=split,
        raw=frame.raw_rows or not frame.sparse,
        ssm_dtype=settings.mamba_ssm_dtype,
    )
    draft = frame.setup.draft
    return sizes.Sizing(
        stages=layers.rows_by_stage(frame.setup.model, stages, context),
        rules=frame.rules,
        page=frame.page,
        context=frame.context,
        window=layers.window_tokens(frame.setup.model) if split else 0,
        window_ratio=settings.swa_full_tokens_ratio,
        state_ratio=settings.mamba_full_memory_ratio,
        slots_per_request=frame.slots_per_request,
        slots=_share(settings.max_mamba_cache_size, groups),
        cached=not settings.disable_radix_cache,
        asked_requests=None if asked is None else max(1, asked // groups),
        most_tokens=settings.max_total_tokens,
        chunk=None if settings.chunked_prefill_size == _NO_CHUNKS else settings.prefill_chunk,
        batches=1 if settings.disable_overlap_schedule else 2,
        draft_layers=len(draft.layers) if draft is not None else 0,
        draft_token_bytes=drafts.token_bytes(frame, draft),
        draft_tokens=settings.draft_tokens,
        decode_tokens=drafts.decode_tokens(settings, frame.page),
    )


def _share(total: int | None, groups: int) -> int | None:
    return None if total is None else total // groups


def _ranks(frame: Frame, stages: tuple[layers.Stage, ...]) -> tuple[memory.RankMemory, ...] | None:
    """One rank's memory by stage; None where the bytes for the pools were given."""
    if frame.setup.kv_budget is not None:
        return None
    last = len(stages) - 1
    return tuple(
        memory.rank_memory(
            frame, weights.layout_of(frame, stage, first=index == 0, last=index == last)
        )
        for index, stage in enumerate(stages)
    )


def _available(frame: Frame, ranks: tuple[memory.RankMemory, ...] | None) -> int:
    """Bytes for the pools of every rank: what the fullest of them has left."""
    if ranks is not None:
        return min(rank.available for rank in ranks)
    budget, spread = frame.setup.kv_budget or (0,), frame.setup.parallelism
    if len(budget) not in (1, spread.tp * spread.pp):
        raise UsageError(
            f"{len(budget)} KV budgets were given for {spread.tp * spread.pp} ranks.",
            hint="Give one for all, or one for each rank of a replica.",
        )
    return min(budget)
