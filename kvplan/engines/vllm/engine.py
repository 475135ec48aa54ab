"""vLLM as the planner sees it: frame → pages → groups → memory → pool → answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kvplan.engines.base import DraftRequest, Setup, parse_version
from kvplan.engines.vllm import drafts, groups, history, layers, memory, parallel
from kvplan.engines.vllm.deployment import VllmDeployment
from kvplan.engines.vllm.frame import UNSTATED_CONTEXT, Frame, frame_of
from kvplan.engines.vllm.grouping import groups_of
from kvplan.engines.vllm.memory import RankInputs, RankMemory
from kvplan.engines.vllm.pool import Pool
from kvplan.plan import Parallelism

NAME = "vllm"


class Vllm:
    """The engine."""

    name = NAME
    newest = history.NEWEST
    unstated_context: int | None = UNSTATED_CONTEXT

    def draft_of(self, options: Mapping[str, Any]) -> DraftRequest | None:
        """The draft that ``speculative_config`` asks for.

        Raises:
            KvplanError: see `kvplan.engines.base.Engine`.
        """
        return drafts.requested(options)

    def prepare(self, setup: Setup) -> VllmDeployment:
        """Works out pages, groups and memory.

        Raises:
            EngineRefusesError, NotModelledError, UsageError: see `kvplan.engines.base.Engine`.
        """
        frame = frame_of(setup)
        _check(frame)
        stages = groups.pipeline_stages(len(setup.model.layers), setup.parallelism.pp)
        spread = _with_experts(frame)
        ranks = _ranks(frame, stages, spread)
        return VllmDeployment(
            setup=setup,
            version=frame.version,
            dtype=frame.dtype,
            kv_dtype=frame.kv_dtype,
            settings=frame.settings,
            device=frame.device,
            sm=frame.sm,
            parallelism=spread,
            pool=Pool(
                groups=groups_of(frame, stages),
                rules=frame.rules,
                in_flight=frame.settings.in_flight_tokens,
                dcp=setup.parallelism.dcp,
                blocks_override=frame.settings.num_gpu_blocks_override,
            ),
            stages=ranks,
            available=_available(frame, ranks),
        )


def _check(frame: Frame) -> None:
    setup, tp = frame.setup, frame.setup.parallelism.tp
    layers.check_heads(setup.model, tp)
    parallel.check_parallel(setup.model, setup.parallelism, frame.rules)
    parallel.check_experts(setup.model, _with_experts(frame))
    drafts.check_draft(frame.settings.speculative, setup.draft, tp)
    if setup.draft is not None:
        layers.check_heads(setup.draft, tp)


def _with_experts(frame: Frame) -> Parallelism:
    """Expert parallelism takes all ranks of all replicas."""
    spread = frame.setup.parallelism
    on = frame.settings.enable_expert_parallel and frame.setup.model.experts
    return spread.model_copy(update={"ep": spread.tp * spread.dp if on else 1})


def _ranks(
    frame: Frame, stages: tuple[groups.Stage, ...], spread: Parallelism
) -> tuple[RankMemory, ...] | None:
    """One rank's memory by stage; None where the bytes for the cache were given."""
    if frame.setup.kv_budget is not None:
        return None
    return tuple(
        memory.rank_memory(
            RankInputs(
                model=frame.setup.model,
                dtype=frame.dtype,
                device=frame.device,
                settings=frame.settings,
                rules=frame.rules,
                version=parse_version(frame.version),
                layout=parallel.rank_layout(spread, stage, index, len(stages)),
                world=spread.tp * spread.pp,
                sm=frame.sm,
                context=frame.context,
                draft=frame.setup.draft,
                vendor=frame.setup.gpu.vendor,
                used_by_others=max(frame.setup.gpu.in_use[: spread.gpus], default=0),
                profile=frame.setup.profile,
            )
        )
        for index, stage in enumerate(stages)
    )


def _available(frame: Frame, ranks: tuple[RankMemory, ...] | None) -> tuple[int, ...]:
    """Bytes for the cache by stage: as given, as the option says, or what the budget leaves."""
    budget, spread = frame.setup.kv_budget, frame.setup.parallelism
    if budget is not None:
        return parallel.by_stage(budget, spread)
    if frame.settings.kv_cache_memory_bytes is not None:
        return (frame.settings.kv_cache_memory_bytes,) * spread.pp
    return tuple(rank.available for rank in ranks or ())
