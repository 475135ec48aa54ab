"""From a frame to its cache groups: the model's layers and its draft's, paged and grouped."""

from __future__ import annotations

from kvplan.engines.vllm import by_model, drafts, groups, history, layers, packed
from kvplan.engines.vllm.cells import CellContext, ignores_kv_dtype
from kvplan.engines.vllm.frame import Frame
from kvplan.engines.vllm.layers import LayerContext
from kvplan.engines.vllm.states import StateContext
from kvplan.errors import EngineRefusesError, NotModelledError
from kvplan.models.formats import DTYPE_BYTES, Dtype, plain_kv


def groups_of(frame: Frame, stages: tuple[groups.Stage, ...]) -> tuple[groups.Group, ...]:
    """The groups of the whole model, projected on its pipeline stages.

    Raises:
        EngineRefusesError, NotModelledError: see `kvplan.engines.base.Engine`.
    """
    setup, rules = frame.setup, frame.rules
    by_model.check_engine(setup.model, rules)
    stacked = setup.model.layers
    if setup.draft is not None:
        # The last stage drafts.
        stacked += setup.draft.layers
        stages = (*stages[:-1], (stages[-1][0], len(stacked)))
    pages = layers.layer_pages(stacked, layer_context(frame))
    if any(cache.kind in ("compressed", "compressor") for cache in setup.model.caches):
        if not rules.packed:
            raise NotModelledError(
                "kvplan does not model how vLLM before 0.27 groups compressed caches.",
                hint=f"Plan for a newer release, for example vllm=={history.NEWEST}.",
            )
        found = packed.packed_groups(pages, stages)
    else:
        if rules.v0:
            pages = tuple(groups.all_whole(pages))
        elif _kept_whole(frame):
            pages = tuple(groups.without_hybrid_manager(pages, rules))
        found = groups.group(pages, stages, rules)
    _check_shared(found, setup.parallelism.dcp)
    return found


def _check_shared(found: tuple[groups.Group, ...], dcp: int) -> None:
    """Ranks of decode context parallelism cannot share a window.

    Source: SlidingWindowSpec.max_memory_usage_bytes, in every release with such ranks.
    """
    if dcp > 1 and any(group.page.kind in ("window", "latent_window") for group in found):
        raise EngineRefusesError(
            "vLLM has no decode context parallelism for windowed attention.",
            hint="Leave out --dcp; beside full layers -o disable_hybrid_kv_cache_manager=true "
            "keeps windows whole instead.",
        )


def _kept_whole(frame: Frame) -> bool:
    """Whether the hybrid manager is off: as asked, or as the release does by itself.

    Source of the rule on EAGLE: vllm/config/vllm.py of 0.10 to 0.33.
    """
    rules, draft = frame.rules, frame.setup.draft
    chunked = any(cache.kind == "chunked" for cache in frame.setup.model.caches)
    eagle = draft is not None and draft.draft is not None
    return (
        frame.settings.disable_hybrid_kv_cache_manager
        or rules.one_group
        or (chunked and (rules.chunks_whole or eagle))
    )


def layer_context(frame: Frame) -> LayerContext:
    """What decides the pages beside the layers themselves."""
    setup, settings = frame.setup, frame.settings
    by_model.check_replay(settings)
    drafted = drafts.tokens_drafted(settings.speculative, setup.draft)
    return LayerContext(
        cell=_cell_context(frame),
        state=_state_context(frame, drafted),
        asked_block=settings.block_size,
        skipped=by_model.skipped_layers(settings, setup.model, frame.kv_dtype),
        max_length=frame.context,
        lookahead=drafts.window_lookahead(setup.draft, drafted),
    )


def _cell_context(frame: Frame) -> CellContext:
    model, parallel = frame.setup.model, frame.setup.parallelism
    plain = ignores_kv_dtype(model)
    batched = frame.settings.max_num_batched_tokens
    return CellContext(
        architecture=model.architecture,
        kv_dtype=frame.dtype if plain else frame.kv_dtype,
        kv=plain_kv(frame.dtype) if plain else frame.kv,
        dtype=frame.dtype,
        tp=parallel.tp,
        dcp=parallel.dcp,
        sm=frame.sm,
        grouped=model.attention_heads > max(layers.kv_heads(model), default=0),
        encoder_tokens=batched if frame.rules.encoder_tokens == "batch" else None,
        sparse=any(cache.kind == "indexer" for cache in model.caches),
        intel=frame.setup.gpu.vendor == "intel",
    )


def _state_context(frame: Frame, drafted: int) -> StateContext:
    settings = frame.settings
    return StateContext(
        architecture=frame.setup.model.architecture,
        dtype=frame.dtype,
        tp=frame.setup.parallelism.tp,
        sm=frame.sm,
        rules=frame.rules,
        conv_dtype=_state_dtype(settings.mamba_cache_dtype),
        ssm_dtype=_state_dtype(settings.mamba_ssm_cache_dtype),
        mode=by_model.state_mode(settings, frame.rules),
        draft_tokens=drafted,
    )


def _state_dtype(name: str | None) -> Dtype | None:
    return next((dtype for dtype in DTYPE_BYTES if dtype == name), None)
