"""Speculative decoding in vLLM: whose layers are drafted with, and what their tokens cost.

Source: vLLM 0.33.0, vllm/config/speculative.py and vllm/config/vllm.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kvplan.engines.base import DraftRequest
from kvplan.engines.vllm.options import read_options
from kvplan.engines.vllm.speculative import Speculative
from kvplan.errors import EngineRefusesError, NotModelledError, UsageError
from kvplan.models.spec import ModelSpec

# Methods that draft without a model: from the prompt, or from earlier answers.
WITHOUT_MODEL = frozenset({"ngram", "ngram_gpu", "[ngram]", "suffix"})
# Names of a model's own modules; vLLM takes those of single families for "mtp" (0.33.0,
# MTPModelTypes).
_OWN_SUFFIX = "mtp"
_HEADS = frozenset({"eagle", "eagle3", "dflash", "dspark"})
_NOT_MODELLED = frozenset({"medusa", "mlp_speculator", "extract_hidden_states", "custom_class"})


def requested(options: Mapping[str, Any]) -> DraftRequest | None:
    """The draft that the options ask for, or None if none has layers of its own.

    Raises:
        KvplanError: options that vLLM does not have; see `kvplan.engines.vllm.options`.
    """
    config = read_options(options).get("speculative_config")
    if config is None or config.method in WITHOUT_MODEL or config.model in WITHOUT_MODEL:
        return None
    if config.method in _NOT_MODELLED:
        raise NotModelledError(
            f"kvplan does not model drafting by {config.method}.",
            hint="mtp, eagle, eagle3, draft_model, dflash and ngram are modelled.",
        )
    if _is_own(config):
        return DraftRequest(model=None)
    if config.model is None and config.method == "dspark":  # vLLM takes the model's own checkpoint
        raise NotModelledError(
            "kvplan does not model dspark drafts that lie in the model's own checkpoint.",
            hint='Name a draft that stands alone: "model": "ORG/NAME".',
        )
    if config.model is None:
        raise UsageError(
            "speculative_config names no model to draft with.",
            hint='Add "model": "ORG/NAME", or use "method": "mtp" or "ngram".',
        )
    return DraftRequest(model=config.model, is_head=config.method == "eagle")


def _is_own(config: Speculative) -> bool:
    return (config.method or "").endswith(_OWN_SUFFIX) and config.model is None


def tokens_drafted(config: Speculative | None, draft: ModelSpec | None) -> int:
    """Tokens a step; where none are given, as many as the model has modules.

    Raises:
        EngineRefusesError: no number, and nothing to take it from.
    """
    if config is None:
        return 0
    if config.num_speculative_tokens is not None:
        return config.num_speculative_tokens
    if config.method in WITHOUT_MODEL or config.model in WITHOUT_MODEL:
        return config.prompt_lookup_max or 0
    modules = len(draft.layers) if draft is not None and draft.draft == "MTP" else 0
    if not modules:
        raise EngineRefusesError(
            "vLLM wants num_speculative_tokens beside a draft.",
            hint='Add "num_speculative_tokens": 3 to speculative_config.',
        )
    return modules


def window_lookahead(draft: ModelSpec | None, tokens: int) -> int:
    """Tokens that windows keep besides, because several modules read further than one.

    Source: num_prefill_lookahead_tokens and get_global_kv_cache_groups.
    """
    if draft is None or draft.draft != "MTP" or min(len(draft.layers), tokens) <= 1:
        return 0
    return tokens - 1


def check_draft(config: Speculative | None, draft: ModelSpec | None, tp: int) -> None:
    """That a draft which is asked for is there, and spread as the model is.

    Raises:
        UsageError: the caller gave no draft.
        NotModelledError: the draft runs on fewer ranks than the model.
    """
    if config is None or config.method in WITHOUT_MODEL or config.model in WITHOUT_MODEL:
        return
    if draft is None:
        raise UsageError(
            "speculative_config asks for a draft, and none was given.",
            hint="Give its specification as the setup's draft.",
        )
    ranks = config.draft_tensor_parallel_size
    if ranks is not None and ranks != tp:
        raise NotModelledError(
            f"kvplan does not model a draft on {ranks} of {tp} tensor-parallel ranks.",
            hint="Leave out draft_tensor_parallel_size.",
        )
