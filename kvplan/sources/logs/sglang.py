"""SGLang's start-up log, 0.3 to 0.5. It divides by 2**30 and prints GB.

A draft model for speculation is loaded, given a pool and captured after the main one, with the
same sentences: weights, pools and graphs of a rank add up.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from kvplan.sources.logs.engine_log import EngineLog
from kvplan.sources.logs.facts import Value, count, gib, text
from kvplan.sources.logs.starts import STARTED
from kvplan.sources.logs.unsure import unsure_sglang
from kvplan.sources.logs.wording import wording

_NAME = r"[^\s']{1,300}"
_SETTINGS = {
    "model_path": "model_path",
    "dtype": "dtype",
    "quantization": "quantization",
    "kv_cache_dtype": "kv_cache_dtype",
    "context_length": "context_length",
    "mem_fraction_static": "mem_fraction_static",
    "max_running_requests": "arg_running_requests",
    "chunked_prefill_size": "chunked_prefill_size",
    "page_size": "page_size",
    "tp_size": "tp",
    "pp_size": "pp",
    "dp_size": "dp",
    "enable_dp_attention": "dp_attention",
}
FACTS = {
    **{name: text(_NAME, "last") for name in _SETTINGS.values()},
    "context_len": count("last"),
    "running_requests": count("last"),
    "total_tokens": count("least"),
    "end_avail_gib": gib("last"),
    "pool_tokens": count(of_rank=True),
    "pool_dtype": text(r"torch\.\w{1,30}", of_rank=True),
    "load_begin_avail_gib": gib("last"),
    "load_end_avail_gib": gib("last"),
    "weights_gib": gib("sum"),
    "k_gib": gib("sum"),
    "v_gib": gib("sum"),
    "kv_gib": gib("sum"),
    "conv_gib": gib("sum"),
    "ssm_gib": gib("sum"),
    "cudagraph_gib": gib("sum"),
}


def derive(values: Mapping[str, Value]) -> dict[str, Value]:
    """The pool from its halves; the number of GPUs; the weights from free memory around loading."""
    found: dict[str, Value] = {}
    for key, parts in {
        "available_kv_gib": ("k_gib", "v_gib"),
        "recurrent_state_gib": ("conv_gib", "ssm_gib"),
    }.items():
        numbers = [values.get(part) for part in parts]
        if all(isinstance(number, float) for number in numbers):
            found[key] = round(sum(number for number in numbers if isinstance(number, float)), 2)
    sizes = [values.get(name) for name in ("tp", "pp", "dp")]
    if all(isinstance(size, int) for size in sizes):
        # With attention split by requests, the replicas share the GPUs of TP.
        counted = sizes[:2] if values.get("dp_attention") is True else sizes
        found["gpu_count"] = math.prod(size for size in counted if isinstance(size, int))
    before, after = values.get("load_begin_avail_gib"), values.get("load_end_avail_gib")
    if isinstance(before, float) and isinstance(after, float):
        found["weights_gib"] = round(before - after, 2)
    return found


SGLANG = EngineLog(
    name="sglang",
    facts=FACTS,
    wordings=(
        # sglang/srt/server.py@v0.3.6, sglang/srt/entrypoints/engine.py@v0.4.4 … v0.5.10
        wording(
            "server_args=",
            FACTS,
            needle="server_args=ServerArgs(",
            begins="server",
            arguments=_SETTINGS,
            needs="dp",
        ),
        # sglang/srt/model_executor/model_runner.py@v0.3.6 … v0.5.10
        wording("Load weight begin. avail mem={load_begin_avail_gib} GB", FACTS),
        wording("Load weight end. {}avail mem={load_end_avail_gib} GB", FACTS),
        # The same @v0.4.4 … v0.5.10
        wording("Load weight end. {}, mem usage={weights_gib} GB", FACTS),
        wording("Capture {}graph end. {}mem usage={cudagraph_gib} GB", FACTS, needle="graph end. "),
        # sglang/srt/mem_cache/memory_pool.py@v0.4.4 … v0.5.10
        wording(
            "KV Cache is allocated. #tokens: {pool_tokens}, K size: {k_gib} GB, V size: {v_gib} GB",
            FACTS,
        ),
        # The same @v0.4.9 … v0.5.10, for latent attention
        wording("KV Cache is allocated. #tokens: {pool_tokens}, KV size: {kv_gib} GB", FACTS),
        # The same in mid-2026
        wording(
            "KV Cache is allocated. dtype: {pool_dtype}, #tokens: {pool_tokens}, "
            "K size: {k_gib} GB, V size: {v_gib} GB",
            FACTS,
        ),
        wording(
            "KV Cache is allocated. dtype: {pool_dtype}, #tokens: {pool_tokens}, "
            "KV size: {kv_gib} GB",
            FACTS,
        ),
        # The same @v0.5.2 … v0.5.10
        wording(
            "Mamba Cache is allocated. {}conv_state size: {conv_gib}GB, "
            "ssm_state size: {ssm_gib}GB",
            FACTS,
        ),
        # sglang/srt/managers/scheduler.py@v0.3.6 … v0.4.4; with the memory left … v0.5.10
        wording(
            "max_total_num_tokens={total_tokens}, {}max_running_requests={running_requests}, "
            "context_len={context_len}",
            FACTS,
            needle="max_total_num_tokens=",
        ),
        wording(
            "max_total_num_tokens={total_tokens}, {}max_running_requests={running_requests}, "
            "context_len={context_len}, available_gpu_mem={end_avail_gib} GB",
            FACTS,
            needle="max_total_num_tokens=",
        ),
        # sglang/srt/entrypoints/http_server.py@v0.4.4 … v0.5.10
        wording("The server is fired up and ready to roll", FACTS, outcome=STARTED),
        # sglang/srt/model_executor/model_runner.py@v0.3.6 … model_runner_kv_cache_mixin.py@v0.5.10
        wording(
            "Not enough memory. Please try to increase --mem-fraction-static",
            FACTS,
            outcome="no_memory_for_cache",
        ),
    ),
    order={
        "model": ("model_path",),
        "tp": ("tp",),
        "pp": ("pp",),
        "dp": ("dp",),
        "max_model_len": ("context_len", "context_length"),
        "max_num_seqs": ("running_requests", "arg_running_requests"),
        "kv_cache_dtype": ("kv_cache_dtype",),
        "dtype": ("dtype",),
        "quantization": ("quantization",),
        "block_size": ("page_size",),
        "weights_gib": ("weights_gib",),
        "cudagraph_gib": ("cudagraph_gib",),
        "available_kv_gib": ("kv_gib",),
        "kv_tokens": ("total_tokens", "pool_tokens"),
        "pool_dtype": ("pool_dtype",),
        "mem_fraction_static": ("mem_fraction_static",),
        "chunked_prefill_size": ("chunked_prefill_size",),
        "available_after_start_gib": ("end_avail_gib",),
    },
    derive=derive,
    unsure=unsure_sglang,
)
