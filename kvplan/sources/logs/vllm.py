"""vLLM's start-up log, 0.6 to 0.33: V0, V1, and the lines of its debug level.

Each wording names a file and a release that prints it; releases between two named ones print the
same. vLLM divides by 2**30 wherever it prints GB or GiB.
"""

from __future__ import annotations

from kvplan.sources.logs.engine_log import EngineLog
from kvplan.sources.logs.facts import Fact, count, gib, ratio, text
from kvplan.sources.logs.unsure import unsure_vllm
from kvplan.sources.logs.vllm_record import ORDER, derive
from kvplan.sources.logs.wording import wording

_VERSION = r"\d[\w.+-]{0,60}"
_NAME = r"[^\s']{1,300}"

FACTS = {
    "engine_version": text(_VERSION, "last"),
    "served_model": text(_NAME, "last"),
    # The resolved configuration, and the arguments as given.
    **{
        f"config_{name}": text(_NAME, "last")
        for name in ("model", "dtype", "quantization", "kv_cache_dtype", "enforce_eager")
    },
    **{f"config_{name}": count("last") for name in ("max_seq_len", "tp", "pp", "dp", "dcp")},
    **{
        f"arg_{name}": text(_NAME, "last")
        for name in (
            *("model", "model_tag", "dtype", "quantization", "kv_cache_dtype", "enforce_eager"),
            *("tp", "pp", "dp", "max_model_len", "max_num_seqs", "max_num_batched_tokens"),
            *("block_size", "gpu_memory_utilization"),
        )
    },
    "using_max_model_len": count("last"),
    "fit_max_model_len": count("last"),
    "concurrency_model_len": count("last"),
    "refused_model_len": count("last"),
    "chunk_tokens": count("last"),
    "attention_block_size": count("last"),
    "backend_block_size": count("last"),
    "profile_blocks": count("least"),
    # While graphs are tried out (0.17 … 0.26) a cache of 0 blocks is said to be overridden.
    "overridden_blocks": Fact(r"[1-9]\d{0,15}(?!\d)", int, "last"),
    "override_blocks": count("last"),
    "final_blocks": count("last"),
    "kv_tokens": count("least"),
    "stored_tokens": count("least"),
    "max_concurrency": ratio("least"),
    "needed_kv_gib": ratio("last"),
    "refused_kv_gib": ratio("last"),
    "est_max_len": count("last"),
    "profile_utilization": ratio("last"),
    "exact_utilization": ratio("last"),
    # Of each rank.
    "weights_gib": gib(),
    "gpu_total_gib": gib(),
    "free_gib": gib(),
    "profile_weights_gib": gib(),
    "torch_peak_gib": gib(),
    "profile_peak_gib": gib(),
    "outside_gib": gib(),
    "non_torch_gib": gib(),
    "available_kv_gib": gib("last"),
    "used_kv_gib": gib("last"),
    "usage_weights_gib": gib(),
    "usage_activation_gib": gib(),
    "consumed_gib": gib(),
    "peak_and_graphs_gib": gib(),
    "graph_estimate": text("enabled|disabled", of_rank=True),
    "cudagraph_gib": gib(),
    "usage_cudagraph_gib": gib(),
    "cudagraph_est_gib": gib(),
}


_CONFIG = {
    "model": "config_model",
    "dtype": "config_dtype",
    "max_seq_len": "config_max_seq_len",
    "tensor_parallel_size": "config_tp",
    "pipeline_parallel_size": "config_pp",
    "data_parallel_size": "config_dp",
    "decode_context_parallel_size": "config_dcp",
    "quantization": "config_quantization",
    "enforce_eager": "config_enforce_eager",
    "kv_cache_dtype": "config_kv_cache_dtype",
}
_ARGUMENTS = {
    "model": "arg_model",
    "model_tag": "arg_model_tag",
    "dtype": "arg_dtype",
    "max_model_len": "arg_max_model_len",
    "max_num_seqs": "arg_max_num_seqs",
    "max_num_batched_tokens": "arg_max_num_batched_tokens",
    "tensor_parallel_size": "arg_tp",
    "pipeline_parallel_size": "arg_pp",
    "data_parallel_size": "arg_dp",
    "quantization": "arg_quantization",
    "enforce_eager": "arg_enforce_eager",
    "kv_cache_dtype": "arg_kv_cache_dtype",
    "block_size": "arg_block_size",
    "gpu_memory_utilization": "arg_gpu_memory_utilization",
}

_BEGINNINGS = (
    # vllm/entrypoints/openai/api_server.py@v0.6.0 … v0.17.0
    wording("vLLM API server version {engine_version}", FACTS, begins="server"),
    # vllm/entrypoints/utils.py@v0.19.0 … vllm/entrypoints/common/startup.py@v0.33.0
    wording(
        "vLLM server version {engine_version}, serving model {served_model}",
        FACTS,
        begins="server",
    ),
    # The same, drawn as a logo.
    wording("\u2588  version {engine_version}", FACTS, needle="  version ", begins="server"),
    wording("\u2588  model {served_model}", FACTS, needle="  model "),
    # vllm/engine/llm_engine.py@v0.6.0 … v0.10.2, vllm/v1/engine/core.py@v0.6.6.post1 … v0.33.0
    wording(
        "Initializing a{}LLM engine (v{engine_version}) with config: ",
        FACTS,
        needle="LLM engine (v",
        begins="core",
        arguments=_CONFIG,
        needs="config_tp",
    ),
    # vllm/entrypoints/openai/cli_args.py@v0.9.2 … vllm/entrypoints/common/startup.py@v0.33.0
    wording("non-default args: ", FACTS, arguments=_ARGUMENTS),
    # vllm/entrypoints/openai/api_server.py@v0.6.0 … v0.8.5
    wording("args: ", FACTS, needle="args: Namespace(", arguments=_ARGUMENTS, opens=False),
)

_SETTINGS = (
    # vllm/config.py@v0.9.2 … vllm/config/model.py@v0.33.0
    wording("Using max model len {using_max_model_len}", FACTS),
    # vllm/v1/core/kv_cache_utils.py@v0.14.1 … vllm/v1/core/kv_cache_planning.py@v0.33.0
    wording("Auto-fit max_model_len: reduced from {} to {fit_max_model_len} to fit in", FACTS),
    # vllm/config.py@v0.6.0 … vllm/config/scheduler.py@v0.33.0
    wording("Chunked prefill is enabled with max_num_batched_tokens={chunk_tokens}.", FACTS),
    # vllm/model_executor/models/config.py@v0.10.2 … vllm/platforms/interface.py@v0.33.0
    wording("Setting attention block size to {attention_block_size} tokens", FACTS),
    # vllm/platforms/interface.py@v0.20.0
    wording("Setting kv cache block size to {backend_block_size} for", FACTS),
)

_MEMORY = (
    # vllm/worker/model_runner.py@v0.6.0 … v0.7.3
    wording("Loading model weights took {weights_gib} GB", FACTS),
    # vllm/worker/model_runner.py and vllm/v1/worker/gpu_model_runner.py in early 0.8
    wording("Model loading took {weights_gib} GB and", FACTS),
    # vllm/v1/worker/gpu_model_runner.py@v0.8.5 … v0.33.0
    wording("Model loading took {weights_gib} GiB", FACTS),
    # vllm/worker/worker.py@v0.6.4; the peak has the weights in it, and what is outside torch counts
    # other programs too.
    wording(
        "Memory profiling results: total_gpu_memory={gpu_total_gib}GiB {}"
        "peak_torch_memory={profile_peak_gib}GiB {}non_torch_memory={outside_gib}GiB "
        "kv_cache_size={available_kv_gib}GiB",
        FACTS,
        needle="Memory profiling results: total_gpu_memory=",
    ),
    wording(
        "Memory profiling results: {}gpu_memory_utilization={profile_utilization}",
        FACTS,
        needle="Memory profiling results: total_gpu_memory=",
    ),
    # vllm/worker/worker.py@v0.6.6.post1 … v0.10.2
    wording(
        "total_gpu_memory ({gpu_total_gib}GiB) x gpu_memory_utilization ({profile_utilization}) =",
        FACTS,
    ),
    wording(
        "model weights take {profile_weights_gib}GiB; non_torch_memory takes {non_torch_gib}GiB; "
        "PyTorch activation peak memory takes {torch_peak_gib}GiB; the rest of the memory "
        "reserved for KV Cache is {available_kv_gib}GiB",
        FACTS,
    ),
    # vllm/utils/__init__.py@v0.9.2 … vllm/utils/mem_utils.py@v0.25.0 (debug level)
    wording(
        "torch peak memory increase: {torch_peak_gib}GiB; non-torch forward increase memory: "
        "{non_torch_gib}GiB; weights memory: {profile_weights_gib}GiB",
        FACTS,
    ),
    # vllm/v1/worker/gpu_worker.py@v0.9.2 … v0.33.0
    wording("Available KV cache memory: {available_kv_gib} GiB", FACTS),
    # vllm/v1/worker/gpu_worker.py@v0.10.2 … v0.33.0, with kv_cache_memory_bytes
    wording("GiB, reserved {available_kv_gib} GiB memory for KV Cache as specified", FACTS),
    # vllm/v1/worker/gpu_worker.py@v0.10.2 … v0.33.0; when it fails, @v0.9.2 … v0.33.0
    wording("Free memory on device {}({free_gib}/{gpu_total_gib} GiB) on startup", FACTS),
    # vllm/v1/worker/gpu_worker.py@v0.10.2 … v0.25.0 (debug level from 0.11)
    wording("Desired GPU memory utilization is ({exact_utilization}, ", FACTS),
    wording(
        "Actual usage is {usage_weights_gib} GiB for weight, {usage_activation_gib} GiB for peak "
        "activation, {non_torch_gib} GiB for non-torch memory, and {usage_cudagraph_gib} GiB for",
        FACTS,
    ),
    # vllm/v1/worker/gpu_worker.py@v0.27.0 … v0.33.0
    wording(
        "Actual usage is {consumed_gib} GiB for consumed memory (weights + non-torch), "
        "{peak_and_graphs_gib} GiB for peak activation, and {usage_cudagraph_gib} GiB for",
        FACTS,
    ),
    wording("Current kv cache memory in use is {used_kv_gib} GiB", FACTS),
    # vllm/worker/model_runner.py@v0.6.6.post1, vllm/v1/worker/gpu_model_runner.py … v0.33.0
    wording("Graph capturing finished in {} secs, took {cudagraph_gib} GiB", FACTS),
    # vllm/v1/worker/gpu_model_runner.py@v0.19.0 … v0.33.0
    wording("Estimated CUDA graph memory: {cudagraph_est_gib} GiB total", FACTS),
    # vllm/v1/worker/gpu_worker.py@v0.19.0 … v0.33.0
    wording("CUDA graph memory profiling is {graph_estimate} (", FACTS),
)

_CAPACITY = (
    # vllm/executor/gpu_executor.py@v0.6.0 (GPU blocks), executor_base.py@v0.7.3 … v0.10.2 (cuda)
    wording("# {} blocks: {profile_blocks}, # CPU blocks: ", FACTS, needle=", # CPU blocks: "),
    # vllm/v1/core/kv_cache_utils.py@v0.7.3
    wording("# GPU blocks: {profile_blocks}", FACTS, needle="GPU blocks: "),
    # vllm/engine/llm_engine.py@v0.6.0 … vllm/v1/core/kv_cache_utils.py@v0.23.0
    wording(
        "Overriding num_gpu_blocks={overridden_blocks} with "
        "num_gpu_blocks_override={override_blocks}",
        FACTS,
    ),
    # vllm/v1/metrics/loggers.py@v0.10.2 … v0.33.0
    wording("initialization after num_gpu_blocks is: {final_blocks}", FACTS),
    # vllm/v1/core/kv_cache_utils.py@v0.8.5 … v0.33.0
    wording("KV cache size: {kv_tokens} tokens", FACTS),
    # vllm/executor/gpu_executor.py@v0.6.6.post1 … vllm/v1/core/kv_cache_utils.py@v0.33.0
    wording(
        "Maximum concurrency for {concurrency_model_len} tokens per request: {max_concurrency}x",
        FACTS,
    ),
)

_ENDINGS = (
    # vllm/engine/llm_engine.py@v0.6.6.post1 … vllm/v1/engine/core.py@v0.33.0
    wording("init engine (profile, create kv cache", FACTS, outcome="started"),
    # vllm/worker/worker.py@v0.6.0 … vllm/v1/core/kv_cache_planning.py@v0.33.0
    wording("No available memory for the cache blocks", FACTS, outcome="no_memory_for_cache"),
    wording(
        "Cannot auto-fit max_model_len: not enough GPU memory",
        FACTS,
        outcome="no_memory_for_cache",
    ),
    # vllm/worker/worker.py@v0.6.0 … v0.10.2
    wording(
        "max seq len ({refused_model_len}) is larger than the maximum number of tokens that can "
        "be stored in KV cache ({stored_tokens})",
        FACTS,
        outcome="max_length_too_large",
    ),
    # vllm/v1/core/kv_cache_utils.py@v0.8.5 … vllm/v1/core/kv_cache_planning.py@v0.33.0
    wording(
        "max seq len ({refused_model_len}), ({needed_kv_gib} GiB KV cache is needed, which is "
        "larger than the available KV cache memory ({refused_kv_gib} GiB)",
        FACTS,
        outcome="max_length_too_large",
    ),
    wording("the estimated maximum model length is {est_max_len}.", FACTS),
    # vllm/v1/worker/gpu_worker.py@v0.9.2 … vllm/v1/worker/utils.py@v0.33.0
    wording(
        "is less than desired GPU memory utilization ({exact_utilization}, ",
        FACTS,
        outcome="not_enough_free_memory",
    ),
    # vllm/v1/worker/gpu_model_runner.py@v0.14.1 … v0.33.0
    wording("Failed to load model - not enough GPU memory", FACTS, outcome="out_of_memory_at_load"),
    # vllm/v1/engine/core_client.py, vllm/v1/engine/utils.py@v0.8.5 … v0.33.0
    wording("Engine core initialization failed", FACTS, outcome="other_failure"),
)

VLLM = EngineLog(
    name="vllm",
    facts=FACTS,
    wordings=(*_BEGINNINGS, *_SETTINGS, *_MEMORY, *_CAPACITY, *_ENDINGS),
    order=ORDER,
    derive=derive,
    fronts=("APIServer", "ApiServer", "EngineCore", "DPSupervisor", "Process-", "MainProcess"),
    unsure=unsure_vllm,
)
