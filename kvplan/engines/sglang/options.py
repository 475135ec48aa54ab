"""SGLang's option names and types: what is sized, what is only noted, what is refused.

Names are those of ServerArgs (sglang/srt/arg_groups/fields), dashes or underscores alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kvplan.engines.option_table import OptionTable
from kvplan.engines.sglang import values
from kvplan.errors import NotModelledError

_STATE_TYPES = ("float32", "bfloat16", "float16")
_STRATEGIES = ("auto", "no_buffer", "extra_buffer", "extra_buffer_lazy")
ALGORITHMS = ("EAGLE", "EAGLE3", "NEXTN", "STANDALONE", "NGRAM")
_OTHER_ALGORITHMS = ("DFLASH", "DSPARK", "UNO", "FROZEN_KV_MTP")


def _state_type(name: str, value: Any) -> str:
    return values.word(name, value, _STATE_TYPES)


def _strategy(name: str, value: Any) -> str:
    return values.word(name, value, _STRATEGIES)


def _algorithm(name: str, value: Any) -> str:
    algorithm = values.word(name, value, (*ALGORITHMS, *_OTHER_ALGORITHMS))
    if algorithm in _OTHER_ALGORITHMS:
        raise NotModelledError(
            f"kvplan does not model SGLang's {algorithm} drafts.",
            hint=f"{', '.join(ALGORITHMS)} are modelled.",
        )
    return algorithm


# What `settings.Settings` holds, by name; the order is that of reports.
READERS: Mapping[str, Callable[[str, Any], Any]] = {
    "mem_fraction_static": values.share,
    "page_size": values.count,
    "max_running_requests": values.count,
    "max_total_tokens": values.count,
    "chunked_prefill_size": values.chunk,
    "max_prefill_tokens": values.count,
    "swa_full_tokens_ratio": values.share,
    "disable_hybrid_swa_memory": values.flag,
    "mamba_full_memory_ratio": values.ratio,
    "max_mamba_cache_size": values.count,
    "mamba_ssm_dtype": _state_type,
    "mamba_radix_cache_strategy": _strategy,
    "disable_radix_cache": values.flag,
    "disable_overlap_schedule": values.flag,
    "enable_dp_attention": values.flag,
    "dp_size": values.count,
    "ep_size": values.count,
    "moe_a2a_backend": values.word,
    "cuda_graph_max_bs": values.count,
    "disable_cuda_graph": values.flag,
    "attention_backend": values.word,
    "speculative_algorithm": _algorithm,
    "speculative_draft_model_path": values.word,
    "speculative_num_steps": values.count,
    "speculative_eagle_topk": values.count,
    "speculative_num_draft_tokens": values.count,
}
# Other names of the same options, SGLang's own and its older ones.
ALIASES: Mapping[str, str] = {
    "attn_dp_size": "dp_size",
    "attention_data_parallel_size": "dp_size",
    "expert_parallel_size": "ep_size",
    "mamba_scheduler_strategy": "mamba_radix_cache_strategy",
    "cuda_graph_max_bs_decode": "cuda_graph_max_bs",
    "speculative_draft_model": "speculative_draft_model_path",
}
# SGLang has these, kvplan does not size what they take: refused rather than ignored, unless
# given as they are by default, which follows the name.
_NOT_YET: Mapping[str, Any] = {
    "enable_unified_memory": False,
    "enable_hisparse": False,
    "enable_kv_cache_sharding": False,
    "enable_prefill_cp": False,
    "enable_lora": False,
    "cpu_offload_gb": 0,
    "enable_linear_replayssm_spec": False,
    "enable_int8_mamba_checkpoint": False,
}
# Arguments of their own; given as options they would silently compete.
_ARGUMENTS: Mapping[str, str] = {
    "model_path": "the first argument",
    "model": "the first argument",
    "context_length": "--context",
    "tp_size": "--tp",
    "tensor_parallel_size": "--tp",
    "pp_size": "--pp",
    "pipeline_parallel_size": "--pp",
    "data_parallel_size": "--dp, or dp_size with enable_dp_attention",
    "dcp_size": "--dcp",
    "kv_cache_dtype": "--kv-dtype",
    "dtype": "--dtype",
    "quantization": "--weights",
}
_TABLE = OptionTable("SGLang", READERS, ALIASES, _NOT_YET, _ARGUMENTS)


def read_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Checks names and types; names come back as ServerArgs has them.

    Raises:
        UnknownNameError, UsageError, NotModelledError: see `OptionTable.read`.
    """
    return _TABLE.read(options)
