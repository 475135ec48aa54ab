"""TensorRT-LLM's start-up log, 0.9 to 1.3: its C++ runtime and its PyTorch backend.

The PyTorch backend allocates a small pool to measure with and then the real one, with the same
sentence, and a draft model's own after it: what is said of a pool counts from the measurement on,
and only if all of it agrees. The lines of its C++ runtime do not say whose rank they are.
"""

from __future__ import annotations

from kvplan.sources.logs.engine_log import EngineLog
from kvplan.sources.logs.facts import count, gib, ratio, text
from kvplan.sources.logs.unsure import unsure_tensorrt_llm
from kvplan.sources.logs.wording import wording

FACTS = {
    "engine_version": text(r"\d[\w.+-]{0,60}", "last"),
    "max_seq_len": count("last"),
    "max_num_tokens": count("last"),
    "max_batch_size": count("last"),
    "fraction": ratio("last"),
    "kv_tokens": count(),
    "pool_gib": ratio(),
    "primary_blocks": count(),
    "tokens_per_block": count(),
    "total_gib": ratio("last"),
    "weights_gib": gib(),
    "activation_gib": gib(),
    "outside_gib": gib("last"),
    "device_gib": gib(),
}

# What is said of the pool that is measured with, and anew of the real one.
_OF_A_POOL = (
    *("pool_gib", "kv_tokens", "primary_blocks", "tokens_per_block"),
    *("max_seq_len", "max_num_tokens", "max_batch_size"),
)

TENSORRT_LLM = EngineLog(
    name="tensorrt-llm",
    facts=FACTS,
    wordings=(
        # tensorrt_llm/__init__.py, _common.py: by every process of a start.
        wording("[TensorRT-LLM] TensorRT-LLM version: {engine_version}", FACTS, begins="process"),
        # The same from 1.2 on
        wording("[TensorRT-LLM] TensorRT LLM version: {engine_version}", FACTS, begins="process"),
        # cpp/tensorrt_llm/batch_manager/kvCacheManager.cpp (0.9 … 1.3)
        wording(
            "Memory usage when calculating max tokens in paged kv cache: total: {total_gib} GiB, "
            "available: {} GiB",
            FACTS,
        ),
        wording("Number of blocks in KV cache primary pool: {primary_blocks}", FACTS),
        wording(
            "Max KV cache blocks per sequence: {} primary blocks={primary_blocks}, ",
            FACTS,
            needle="primary blocks=",
        ),
        wording("Number of tokens per block: {tokens_per_block}.", FACTS),
        wording("Allocated {pool_gib} GiB for max tokens in paged KV cache ({kv_tokens})", FACTS),
        # tensorrt_llm/_torch/pyexecutor/_util.py (0.19 … 1.3)
        wording(
            "Memory used after loading model weights (inside torch) in memory usage profiling: "
            "{weights_gib} GiB",
            FACTS,
        ),
        wording(
            "Memory dynamically allocated during inference (inside torch) in memory usage "
            "profiling: {activation_gib} GiB",
            FACTS,
        ),
        wording(
            "Memory used outside torch (e.g., NCCL and CUDA graphs) in memory usage profiling: "
            "{outside_gib} GiB",
            FACTS,
        ),
        wording(
            "available KV cache memory when calculating max tokens: {} GiB, fraction is set "
            "{fraction}, {}device total memory {device_gib} GiB",
            FACTS,
            resets=_OF_A_POOL,
        ),
        # tensorrt_llm/_torch/pyexecutor/py_executor_creator.py
        wording(
            "max_seq_len={max_seq_len}, max_num_requests={}, max_num_tokens={max_num_tokens}, "
            "max_batch_size={max_batch_size}",
            FACTS,
            needle="max_num_requests=",
        ),
        wording(
            "max_seq_len={max_seq_len}, max_num_requests={max_batch_size}, "
            "max_num_tokens={max_num_tokens}",
            FACTS,
            needle="max_num_requests=",
        ),
    ),
    order={
        "engine_version": ("engine_version",),
        "gpu_total_gib": ("device_gib", "total_gib"),
        "max_model_len": ("max_seq_len",),
        "max_num_seqs": ("max_batch_size",),
        "max_num_batched_tokens": ("max_num_tokens",),
        "block_size": ("tokens_per_block",),
        "weights_gib": ("weights_gib",),
        "activation_peak_gib": ("activation_gib",),
        "available_kv_gib": ("pool_gib",),
        "num_gpu_blocks": ("primary_blocks",),
        "kv_tokens": ("kv_tokens",),
        "free_gpu_memory_fraction": ("fraction",),
        "outside_torch_gib": ("outside_gib",),
    },
    unsure=unsure_tensorrt_llm,
)
