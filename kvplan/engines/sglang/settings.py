"""SGLang's options resolved: what was given, and what this release fills in on this GPU."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from kvplan.engines.sglang import defaults
from kvplan.engines.sglang.history import Rules
from kvplan.engines.sglang.options import READERS, read_options
from kvplan.errors import EngineRefusesError, NotModelledError, UsageError
from kvplan.models.formats import Dtype
from kvplan.plan import Parallelism

# Drafting admits this many requests where nobody says otherwise.
_REQUESTS_WITH_DRAFT = 48
_PREFILL_TOKENS = 16384
_NGRAM_TOKENS = 12
# Steps, branches and tokens of a draft by class; others take (3, 1, 4).
# Source: sglang/srt/arg_groups/speculative_hook.py _auto_choose_speculative_params.
_DRAFT_SHAPES: Mapping[str, tuple[int, int, int]] = {
    "LlamaForCausalLM": (5, 4, 8),
    "Grok1ForCausalLM": (5, 4, 8),
    "Grok1VForCausalLM": (5, 4, 8),
}
_DRAFT_SHAPE = (3, 1, 4)
_NO_CHUNKS = -1
_UNSIZED = ("attention_backend",)


@dataclass(frozen=True, slots=True)
class Settings:
    """Resolved options. None: not given, and SGLang decides by the model.

    Attributes:
        page_size: As given; None: the attention backend decides.
        chunked_prefill_size: Tokens of a chunk over all groups; -1: no chunks.
        prefill_chunk: Tokens of a prefill batch of one group.
        dp_size: Groups of data-parallel attention in one replica.
        draft_tokens: Tokens drafted for a step; 0 without a draft.
        unsized: Options that were given and that no byte of the plan depends on.
        assumed: Names of the options that kvplan filled in.
    """

    mem_fraction_static: float
    chunked_prefill_size: int
    max_prefill_tokens: int
    cuda_graph_max_bs: int
    disable_cuda_graph: bool
    swa_full_tokens_ratio: float
    mamba_full_memory_ratio: float
    mamba_radix_cache_strategy: str
    disable_radix_cache: bool
    disable_overlap_schedule: bool
    enable_dp_attention: bool
    dp_size: int
    ep_size: int
    moe_a2a_backend: str
    prefill_chunk: int
    draft_tokens: int
    assumed: tuple[str, ...]
    page_size: int | None = None
    max_running_requests: int | None = None
    max_total_tokens: int | None = None
    disable_hybrid_swa_memory: bool = False
    max_mamba_cache_size: int | None = None
    mamba_ssm_dtype: Dtype | None = None
    attention_backend: str | None = None
    speculative_algorithm: str | None = None
    speculative_draft_model_path: str | None = None
    speculative_num_steps: int | None = None
    speculative_eagle_topk: int | None = None
    speculative_num_draft_tokens: int | None = None
    unsized: tuple[str, ...] = ()

    def as_options(self) -> dict[str, Any]:
        """Option names and values for people and JSON; what is unset is left out."""
        found = {name: getattr(self, name) for name in READERS}
        return {name: value for name, value in found.items() if value is not None}


def resolve(
    options: Mapping[str, Any],
    rules: Rules,
    card: defaults.Card,
    *,
    architecture: str,
    parallelism: Parallelism,
) -> Settings:
    """Fills in what the user left out, as this release does on this GPU.

    Args:
        options: The engine's own names and values.
        rules: Those of the release.
        card: The device; graphs, groups, DeepEP and draft are filled in from the options.
        architecture: The model's class.
        parallelism: Ranks of the deployment.

    Raises:
        EngineRefusesError: groups or experts that do not divide the ranks.
        UsageError, NotModelledError: see `read_options`.
    """
    given = read_options(options)
    groups = _groups(given, parallelism.tp)
    _check_experts(given, parallelism.tp)
    chunk = given.get("chunked_prefill_size") or defaults.chunk_tokens(card.mib, rules)
    prefill = given.get("max_prefill_tokens", _PREFILL_TOKENS) if chunk == _NO_CHUNKS else chunk
    batch = _captured(given, card, rules)
    card = _with_options(card, given, groups)
    filled: dict[str, Any] = {
        "mem_fraction_static": defaults.static_fraction(card, rules, chunk=prefill, batch=batch),
        "chunked_prefill_size": chunk,
        "max_prefill_tokens": _PREFILL_TOKENS,
        "cuda_graph_max_bs": batch,
        "disable_cuda_graph": False,
        "swa_full_tokens_ratio": 0.8,
        "mamba_full_memory_ratio": 0.9,
        "mamba_radix_cache_strategy": "auto",
        "disable_radix_cache": False,
        "disable_overlap_schedule": False,
        "enable_dp_attention": groups > 1,
        "dp_size": groups,
        "ep_size": 1,
        "moe_a2a_backend": "none",
        **_draft_shape(given, architecture),
    }
    return Settings(
        **(filled | given),
        prefill_chunk=max(1, prefill // groups),
        draft_tokens=(filled | given).get("speculative_num_draft_tokens", 0),
        unsized=tuple(name for name in _UNSIZED if name in given),
        assumed=tuple(name for name in filled if name not in given),
    )


def _groups(given: Mapping[str, Any], tp: int) -> int:
    groups: int = given.get("dp_size", 1)
    if given.get("enable_dp_attention") and "dp_size" not in given:
        raise UsageError(
            "enable_dp_attention needs the number of groups.", hint=f"Add -o dp_size={tp}."
        )
    if groups > 1 and not given.get("enable_dp_attention"):
        raise UsageError(
            "dp_size without enable_dp_attention starts whole replicas.", hint=f"Use --dp {groups}."
        )
    if tp % groups:
        raise EngineRefusesError(
            f"SGLang refuses dp_size {groups}: it does not divide --tp {tp}.",
            hint="Data-parallel attention shares the tensor-parallel ranks.",
        )
    return groups


def _check_experts(given: Mapping[str, Any], tp: int) -> None:
    experts = given.get("ep_size", 1)
    if experts not in (1, tp):
        raise NotModelledError(
            f"kvplan does not model experts over {experts} of {tp} ranks.",
            hint=f"Use ep_size 1 or {tp}.",
        )


def _captured(given: Mapping[str, Any], card: defaults.Card, rules: Rules) -> int:
    if "cuda_graph_max_bs" in given:
        return int(given["cuda_graph_max_bs"])
    batch = defaults.captured_batch(card.mib, card.tp, rules)
    if rules.batch_capped and "max_running_requests" in given:
        return min(batch, int(given["max_running_requests"]))
    return batch


def _with_options(card: defaults.Card, given: Mapping[str, Any], groups: int) -> defaults.Card:
    off = given.get("disable_cuda_graph", False)
    algorithm = given.get("speculative_algorithm")
    return replace(
        card,
        attn_dp=groups,
        decode_graphs=not off,
        prefill_graphs=card.prefill_graphs and not off,
        deepep=given.get("moe_a2a_backend") == "deepep",
        draft=None if algorithm in (None, "NGRAM") else algorithm == "STANDALONE",
    )


def _draft_shape(given: Mapping[str, Any], architecture: str) -> dict[str, int]:
    """What drafting fills in: requests at once, steps, branches and tokens."""
    algorithm = given.get("speculative_algorithm")
    if algorithm is None:
        return {}
    filled = {"max_running_requests": _REQUESTS_WITH_DRAFT}
    if algorithm == "NGRAM":
        return filled | {"speculative_num_draft_tokens": _NGRAM_TOKENS}
    steps, branches, tokens = _DRAFT_SHAPES.get(architecture, _DRAFT_SHAPE)
    if algorithm == "STANDALONE":
        steps, branches, tokens = _DRAFT_SHAPE
    if "speculative_num_steps" in given:
        branches = given.get("speculative_eagle_topk", 1)
        tokens = given["speculative_num_steps"] + 1
    return filled | {
        "speculative_num_steps": steps,
        "speculative_eagle_topk": branches,
        "speculative_num_draft_tokens": tokens,
    }
