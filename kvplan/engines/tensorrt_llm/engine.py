"""TensorRT-LLM as the planner sees it: frame → pools → memory → blocks → answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kvplan.engines.base import DraftRequest, Setup
from kvplan.engines.tensorrt_llm import history, memory, pages
from kvplan.engines.tensorrt_llm.blocks import Share, Sizing
from kvplan.engines.tensorrt_llm.deployment import TensorRtDeployment
from kvplan.engines.tensorrt_llm.frame import UNSTATED_CONTEXT, Frame, frame_of
from kvplan.engines.tensorrt_llm.options import read_options
from kvplan.errors import NotModelledError, UsageError

NAME = "tensorrt-llm"


class TensorRtLlm:
    """The engine."""

    name = NAME
    newest = history.NEWEST
    unstated_context: int | None = UNSTATED_CONTEXT

    def draft_of(self, options: Mapping[str, Any]) -> DraftRequest | None:
        """None: kvplan sizes no drafts of TensorRT-LLM's, and refuses options that ask for one.

        Raises:
            KvplanError: see `kvplan.engines.base.Engine`.
        """
        read_options(options)
        return None

    def prepare(self, setup: Setup) -> TensorRtDeployment:
        """Works out pools, memory and blocks.

        Raises:
            EngineRefusesError, NotModelledError, UsageError: see `kvplan.engines.base.Engine`.
        """
        frame = frame_of(setup)
        if (setup.model.quantization or "").startswith("gguf"):
            # nvidia.github.io/TensorRT-LLM/1.3.0rc27/features/quantization.html
            raise NotModelledError(
                "GGUF is not among the formats that TensorRT-LLM documents.",
                hint="Choose llama.cpp, or the model's own checkpoint.",
            )
        if setup.parallelism.dcp > 1:
            raise NotModelledError(
                "kvplan does not model context parallelism in TensorRT-LLM.",
                hint="Leave out --dcp.",
            )
        pages.check_heads(setup.model, frame.attention_tp)
        stages = pages.pipeline_stages(len(setup.model.layers), setup.parallelism.pp)
        sizing = _sizing(frame, stages)
        ranks = _ranks(frame, stages)
        ep = frame.settings.moe_expert_parallel_size if setup.model.experts else 1
        return TensorRtDeployment(
            frame=frame,
            parallelism=setup.parallelism.model_copy(update={"ep": ep}),
            sizing=sizing,
            ranks=ranks,
            shares=_shares(frame, ranks),
        )


def _sizing(frame: Frame, stages: tuple[pages.Stage, ...]) -> Sizing:
    settings = frame.settings
    pools = tuple(pages.pools_of(frame, stage) for stage in stages)
    if not all(pools):
        raise NotModelledError(
            "A rank without any attention cache is not modelled for TensorRT-LLM.",
            hint="Plan for vLLM, or use fewer pipeline stages.",
        )
    return Sizing(
        stages=pools,
        block=settings.tokens_per_block,
        rounds_up=settings.backend == "tensorrt" or frame.rules.rounds_up,
        max_tokens=settings.max_tokens,
        max_bytes=settings.max_gpu_total_bytes or None,
        batch=settings.max_batch_size,
    )


def _ranks(frame: Frame, stages: tuple[pages.Stage, ...]) -> tuple[memory.RankMemory, ...] | None:
    """One rank's memory by stage; None where the bytes for the cache were given."""
    if frame.setup.kv_budget is not None:
        return None
    last = len(stages) - 1
    return tuple(
        memory.rank_memory(
            frame, memory.layout_of(frame, stage, first=index == 0, last=index == last)
        )
        for index, stage in enumerate(stages)
    )


def _shares(frame: Frame, ranks: tuple[memory.RankMemory, ...] | None) -> tuple[Share, ...]:
    if ranks is not None:
        return tuple(rank.share for rank in ranks)
    budget, spread = frame.setup.kv_budget or (0,), frame.setup.parallelism
    tp, pp = spread.tp, spread.pp
    if len(budget) == 1:
        return (Share(budget[0], budget[0]),) * pp
    if len(budget) == tp * pp:
        least = [min(budget[stage * tp : (stage + 1) * tp]) for stage in range(pp)]
        return tuple(Share(part, part) for part in least)
    raise UsageError(
        f"{len(budget)} KV budgets were given for {tp * pp} ranks.",
        hint="Give one for all, or one for each rank of a replica.",
    )
