"""TensorRT-LLM's option names and types: what is sized, what is only noted, what is refused.

Names are those of LlmArgs and its KvCacheConfig (tensorrt_llm/llmapi/llm_args.py), and of
trtllm-serve.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kvplan.engines.option_table import OptionTable
from kvplan.engines.tensorrt_llm import values

BACKENDS = ("pytorch", "tensorrt")


def _backend(name: str, value: Any) -> str:
    return values.word(name, value, BACKENDS)


# What `settings.Settings` holds, by name; the order is that of reports.
READERS: Mapping[str, Callable[[str, Any], Any]] = {
    "backend": _backend,
    "free_gpu_memory_fraction": values.share,
    "tokens_per_block": values.power,
    "max_num_tokens": values.count,
    "max_batch_size": values.count,
    "max_seq_len": values.count,
    "max_attention_window": values.counts,
    "max_tokens": values.count,
    "max_gpu_total_bytes": values.size,
    "host_cache_size": values.size,
    "enable_block_reuse": values.flag,
    "enable_attention_dp": values.flag,
    "moe_expert_parallel_size": values.count,
}
UNSIZED = ("enable_block_reuse",)
ALIASES: Mapping[str, str] = {
    "kv_cache_free_gpu_memory_fraction": "free_gpu_memory_fraction",
    "kv_cache_free_gpu_mem_fraction": "free_gpu_memory_fraction",
    "max_tokens_in_paged_kv_cache": "max_tokens",
    "max_attention_window_size": "max_attention_window",
    "kv_cache_host_memory_bytes": "host_cache_size",
    "ep_size": "moe_expert_parallel_size",
}
# TensorRT-LLM has these, kvplan does not size what they take: refused rather than ignored,
# unless given as they are by default, which follows the name.
_NOT_YET: Mapping[str, Any] = {
    "speculative_config": None,
    "use_kv_cache_manager_v2": "auto",
    "max_beam_width": 1,
    "context_parallel_size": 1,
    "cross_kv_cache_fraction": None,
    "sink_token_length": 0,
    "enable_lora": False,
}
# Arguments of their own; given as options they would silently compete.
_ARGUMENTS: Mapping[str, str] = {
    "model": "the first argument",
    "tp_size": "--tp",
    "tensor_parallel_size": "--tp",
    "pp_size": "--pp",
    "pipeline_parallel_size": "--pp",
    "kv_cache_dtype": "--kv-dtype",
    "dtype": "--dtype",
}
_TABLE = OptionTable("TensorRT-LLM", READERS, ALIASES, _NOT_YET, _ARGUMENTS)


def read_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Checks names and types; names come back as LlmArgs has them.

    Raises:
        UnknownNameError, UsageError, NotModelledError: see `OptionTable.read`.
    """
    return _TABLE.read(options)
