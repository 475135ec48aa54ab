"""How vLLM's facts become a record's keys, and what follows from two of them together."""

from __future__ import annotations

import math
from collections.abc import Mapping

from kvplan.sources.logs.facts import Value

# The keys of a record, and the facts that give them, most telling first.
ORDER: dict[str, tuple[str, ...]] = {
    "engine_version": ("engine_version",),
    "model": ("config_model", "arg_model", "arg_model_tag", "served_model"),
    "gpu_total_gib": ("gpu_total_gib",),
    "tp": ("config_tp", "arg_tp"),
    "pp": ("config_pp", "arg_pp"),
    "dp": ("config_dp", "arg_dp"),
    "gpu_memory_utilization": (
        *("arg_gpu_memory_utilization", "exact_utilization", "profile_utilization"),
    ),
    "max_model_len": (
        *("concurrency_model_len", "fit_max_model_len", "refused_model_len"),
        *("config_max_seq_len", "using_max_model_len", "arg_max_model_len"),
    ),
    "max_num_seqs": ("arg_max_num_seqs",),
    "max_num_batched_tokens": ("chunk_tokens", "arg_max_num_batched_tokens"),
    "kv_cache_dtype": ("config_kv_cache_dtype", "arg_kv_cache_dtype"),
    "dtype": ("config_dtype", "arg_dtype"),
    "quantization": ("config_quantization", "arg_quantization"),
    "block_size": ("attention_block_size", "backend_block_size", "arg_block_size"),
    "enforce_eager": ("config_enforce_eager", "arg_enforce_eager"),
    "weights_gib": ("weights_gib", "profile_weights_gib", "usage_weights_gib"),
    "activation_peak_gib": ("usage_activation_gib", "torch_peak_gib"),
    "non_torch_gib": ("non_torch_gib",),
    "cudagraph_gib": ("cudagraph_gib", "usage_cudagraph_gib"),
    "cudagraph_est_gib": ("cudagraph_est_gib",),
    "available_kv_gib": ("available_kv_gib", "used_kv_gib", "refused_kv_gib"),
    "num_gpu_blocks": ("override_blocks", "final_blocks", "profile_blocks"),
    "kv_tokens": ("kv_tokens", "stored_tokens"),
    "max_concurrency": ("max_concurrency",),
    "needed_kv_gib": ("needed_kv_gib",),
    "est_max_len": ("est_max_len",),
    "decode_context_parallel": ("config_dcp",),
    "free_memory_before_start_gib": ("free_gib",),
    "weights_plus_non_torch_gib": ("consumed_gib",),
    "peak_activation_printed_gib": ("peak_and_graphs_gib",),
    "outside_torch_gib": ("outside_gib",),
}


def derive(values: Mapping[str, Value]) -> dict[str, Value]:
    """The number of GPUs; figures of one rank where the log prints only a sum.

    0.6.4 prints torch's peak with the weights in it (vllm/worker/worker.py@v0.6.4). From 0.26 on
    vLLM prints weights and other memory outside torch's peak as one figure, and the peak with the
    estimate of its graphs added (vllm/v1/worker/gpu_worker.py@v0.27.0).
    """
    found: dict[str, Value] = {}
    sizes = [values.get(f"config_{name}", values.get(f"arg_{name}")) for name in ("tp", "pp", "dp")]
    if all(isinstance(size, int) for size in sizes):
        found["gpu_count"] = math.prod(size for size in sizes if isinstance(size, int))
    weights, consumed = values.get("weights_gib"), values.get("consumed_gib")
    if isinstance(weights, float) and isinstance(consumed, float):
        found["non_torch_gib"] = round(consumed - weights, 2)
    peak, graphs = values.get("peak_and_graphs_gib"), _graphs_in_peak(values)
    if isinstance(peak, float) and graphs is not None:
        found["activation_peak_gib"] = round(peak - graphs, 2)
    in_all = values.get("profile_peak_gib")
    if isinstance(weights, float) and isinstance(in_all, float):
        found["activation_peak_gib"] = round(in_all - weights, 2)
    return found


def _graphs_in_peak(values: Mapping[str, Value]) -> float | None:
    """How much of the printed peak is the graphs' estimate, or None if that can't be told."""
    if values.get("config_enforce_eager") is True or values.get("graph_estimate") == "disabled":
        return 0.0
    estimate = values.get("cudagraph_est_gib")
    applied = values.get("graph_estimate") == "enabled"
    return estimate if applied and isinstance(estimate, float) else None
