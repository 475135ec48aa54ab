"""vLLM's speculative_config, read and checked for types; what it costs is decided elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kvplan.engines.vllm import values
from kvplan.errors import UnknownNameError, UsageError, nearest, shown


@dataclass(frozen=True, slots=True)
class Speculative:
    """How drafts are made. None = not given.

    Attributes:
        method: ``mtp``, ``eagle3``, ``draft_model``, ``ngram``, ... or None: vLLM tells it from
            the draft's configuration.
        model: The draft: a Hub id, a folder, or a config.json; ``ngram`` and ``[ngram]`` too.
        num_speculative_tokens: Tokens drafted a step.
        prompt_lookup_max: Longest n-gram that is looked up.
        draft_tensor_parallel_size: Ranks of the draft; 1 or those of the model.
        other: Keys that were given and that change no page here, sorted.
    """

    method: str | None = None
    model: str | None = None
    num_speculative_tokens: int | None = None
    prompt_lookup_max: int | None = None
    draft_tensor_parallel_size: int | None = None
    other: tuple[str, ...] = ()

    def as_mapping(self) -> dict[str, Any]:
        """The keys that were given, as vLLM names them."""
        pairs = {name: getattr(self, name) for name in _READERS}
        return {name: value for name, value in pairs.items() if value is not None}


_READERS: dict[str, Callable[[str, Any], Any]] = {
    "method": values.word,
    "model": values.word,
    "num_speculative_tokens": values.count,
    "prompt_lookup_max": values.count,
    "draft_tensor_parallel_size": values.count,
}
# Keys of the same mapping that kvplan reads over. Source: vLLM 0.33.0, vllm/config/speculative.py;
# the last line is of 0.8 to 0.14, same file.
_OTHER = (
    *("enforce_eager", "quantization", "moe_backend", "attention_backend", "kv_cache_dtype"),
    *("max_model_len", "revision", "code_revision", "index_share_for_mtp_iteration"),
    *("disable_padded_drafter_batch", "disable_eagle_block_drop"),
    *("disable_lookahead_block_hashes", "draft_lm_head_quantization"),
    *("use_local_argmax_reduction", "use_heterogeneous_vocab", "prompt_lookup_min"),
    *("parallel_drafting", "num_speculative_tokens_per_batch_size", "draft_load_config"),
    *("suffix_decoding_max_tree_depth", "suffix_decoding_max_cached_requests"),
    *("suffix_decoding_max_spec_factor", "suffix_decoding_min_token_prob"),
    *("rejection_sample_method", "synthetic_acceptance_rates", "synthetic_acceptance_length"),
    *("enable_adaptive_verification", "draft_sample_method", "dspark_draft_topk"),
    *("xpress_topc", "fly_window_size", "fly_entropy_threshold", "fly_entropy_top_k"),
    *("disable_by_batch_size", "disable_logprobs", "acceptance_method", "speculative_token_tree"),
    *("posterior_threshold", "posterior_alpha", "disable_mqa_scorer", "tensor_parallel_size"),
)


def read(name: str, value: Any) -> Speculative:
    """Checks names and types.

    Raises:
        UnknownNameError: vLLM has no such key; the nearest one is the hint.
        UsageError: no mapping, or a value of the wrong type.
    """
    given = {key.replace("-", "_"): each for key, each in values.mapping(name, value).items()}
    for key in given:
        if key not in _READERS and key not in _OTHER:
            raise UnknownNameError(
                f"vLLM's {name} has no key {shown(key)} that kvplan knows.",
                hint=nearest(key, (*_READERS, *_OTHER)) or f"It knows {', '.join(_READERS)}.",
            )
    if not given:
        raise UsageError(
            f"{name} is empty.",
            hint='Write {"method": "mtp", "num_speculative_tokens": 1}.',
        )
    return Speculative(**_typed(name, given), other=tuple(sorted(given.keys() & set(_OTHER))))


def _typed(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: reader(f"{name}.{key}", given[key])
        for key, reader in _READERS.items()
        if given.get(key) is not None
    }
