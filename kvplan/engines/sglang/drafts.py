"""Speculative decoding in SGLang: whose layers are drafted with, and what their tokens cost.

Source: SGLang 0.5.23, sglang/srt/arg_groups/speculative_hook.py and
sglang/srt/mem_cache/allocation_sizing.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kvplan.engines.base import DraftRequest
from kvplan.engines.sglang import layers, pools
from kvplan.engines.sglang.frame import Frame
from kvplan.engines.sglang.options import read_options
from kvplan.engines.sglang.settings import Settings
from kvplan.errors import EngineRefusesError, NotModelledError, UsageError
from kvplan.models.caches import LatentCache
from kvplan.models.formats import ceil_div
from kvplan.models.spec import ModelSpec

_NEEDS_PATH = ("EAGLE3", "STANDALONE")


def requested(options: Mapping[str, Any]) -> DraftRequest | None:
    """The draft that the options ask for, or None if none has layers of its own.

    Raises:
        KvplanError: options that SGLang does not have; see `kvplan.engines.sglang.options`.
    """
    read = read_options(options)
    algorithm, path = read.get("speculative_algorithm"), read.get("speculative_draft_model_path")
    if algorithm is None or algorithm == "NGRAM":
        return None
    if path is None and algorithm in _NEEDS_PATH:
        raise UsageError(
            f"{algorithm} needs a model to draft with.",
            hint="Add -o speculative_draft_model_path=ORG/NAME.",
        )
    return DraftRequest(model=path, is_head=path is not None and algorithm in ("EAGLE", "NEXTN"))


def check_draft(frame: Frame) -> None:
    """That a draft which is asked for is there, and of a kind that is modelled.

    Raises:
        UsageError: the caller gave no draft.
        NotModelledError: a release that sizes drafts in another way.
        EngineRefusesError: STANDALONE with data-parallel attention.
    """
    algorithm = frame.settings.speculative_algorithm
    if algorithm is None or algorithm == "NGRAM":
        return
    if frame.setup.draft is None:
        raise UsageError(
            "speculative_algorithm asks for a draft, and none was given.",
            hint="Give its specification as the setup's draft.",
        )
    if frame.rules.draft_reserve_mib is not None:
        raise NotModelledError(
            f"kvplan does not model drafts in SGLang {frame.version}, which loads them late.",
            hint="Plan for 0.5.15 or later.",
        )
    if algorithm == "STANDALONE" and frame.settings.dp_size > 1:
        raise EngineRefusesError(
            "SGLang refuses STANDALONE drafts with data-parallel attention.",
            hint="Leave out enable_dp_attention.",
        )


def token_bytes(frame: Frame, draft: ModelSpec | None) -> int:
    """Bytes of a token in the draft's own pool, on one rank."""
    if draft is None:
        return 0
    return sum(_layer_bytes(frame, layer.caches) for layer in draft.layers)


def _layer_bytes(frame: Frame, caches: tuple[Any, ...]) -> int:
    total = 0
    for cache in caches:
        if isinstance(cache, layers.HEADED):
            heads = cache.heads_per_rank(frame.attention_tp)
            total += pools.headed_bytes(heads, cache.head_dim, cache.head_dim_v, frame.stored)
        elif isinstance(cache, LatentCache):
            total += pools.sparse_latent_bytes(
                cache.latent_dim,
                cache.rope_dim,
                frame.stored,
                raw=frame.raw_rows or not frame.sparse,
            )
        elif cache.kind == "indexer":
            total += pools.index_bytes(cache.head_dim)
    return total


def decode_tokens(settings: Settings, page: int) -> int:
    """Tokens that one step may allocate for a request (get_alloc_len_per_decode)."""
    if settings.speculative_algorithm is None:
        return 1
    steps = settings.speculative_num_steps or 1
    branches = settings.speculative_eagle_topk or 1
    if page == 1 or branches == 1 or settings.speculative_algorithm == "NGRAM":
        return max(steps * branches, settings.draft_tokens)
    return max(ceil_div(2 * (page - 1) + steps, page) * page * branches, settings.draft_tokens)


def row_tokens(settings: Settings, *, context: int, page: int) -> int:
    """Tokens of a row of the request table (get_req_to_token_extra_context_len)."""
    extra = 4 + settings.draft_tokens
    if settings.speculative_algorithm is not None and page > 1:
        extra = max(extra, 2 * decode_tokens(settings, page) + page - 1)
    return context + extra
