"""The flags of `vllm serve`, `vllm.entrypoints.*` and `vllm bench`, by what follows them.

Names were read from every `add_argument` and every annotated field of EngineArgs and FrontendArgs
in the releases that `defaults` lists, 0.6.6 to 0.33.0 (vllm/engine/arg_utils.py,
vllm/entrypoints/**). Dashes stand for underscores; ``--no-x`` switches ``--x`` off.
"""

from __future__ import annotations

from collections.abc import Mapping


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


BOOLEANS = _names(
    """
    aggregate-engine-logging allow-credentials allow-deprecated-quantization async-scheduling
    calculate-kv-scales cohere-is-reasoning-model cudagraph-metrics data-parallel-external-lb
    data-parallel-hybrid-lb data-parallel-multi-port-external-lb dcp-q-replicate
    disable-async-output-proc disable-cascade-attn disable-chunked-mm-input
    disable-custom-all-reduce disable-fastapi-docs disable-frontend-multiprocessing
    disable-hybrid-kv-cache-manager disable-log-requests disable-log-stats
    disable-log-stats-server disable-logprobs-during-spec-decoding disable-mm-preprocessor-cache
    disable-nccl-for-dp-synchronization disable-sliding-window disable-uvicorn-access-log
    dry-run enable-auto-tool-choice enable-batch-sharded-sampling enable-bf16x3-router-gemm
    enable-chunked-prefill enable-cumem-allocator enable-dbo enable-elastic-ep
    enable-ep-weight-filter enable-eplb enable-expert-parallel enable-fault-tolerance
    enable-flash-late-interaction enable-flashinfer-autotune enable-force-include-usage
    enable-hc-sp enable-layerwise-nvtx-tracing enable-log-deltas enable-log-outputs
    enable-log-requests enable-logging-iteration-details enable-lora enable-lora-bias
    enable-mamba-cache-stochastic-rounding enable-mamba-fine-grained-prefix-cache
    enable-mamba-shared-prefix-checkpoint enable-metrics enable-mfu-metrics
    enable-mixed-moe-lora-format enable-mm-embeds enable-moe-shared-loras
    enable-multimodal-encoder-data-parallel enable-nccl-comm-suspend enable-offline-docs
    enable-per-request-metrics enable-prefix-caching enable-prompt-adapter enable-prompt-embeds
    enable-prompt-tokens-details enable-reasoning enable-request-id-headers
    enable-return-routed-experts enable-scale-out enable-server-load-tracking
    enable-shm-tensor-arena enable-sleep-mode enable-ssl-refresh enable-tokenizer-info-endpoint
    enable-tower-connector-lora enable-trace-replay enforce-eager engine-use-ray
    eplb-log-balancedness exclude-tools-when-tool-choice-none
    expand-tools-even-if-tool-choice-none fail-on-environ-validation fully-sharded-loras grpc
    guided-decoding-disable-additional-properties guided-decoding-disable-any-whitespace
    guided-decoding-disable-fallback headless interleave-mm-strings jit-monitor-verbose
    kv-cache-metrics kv-sharing-fast-prefill language-model-only log-error-stack
    long-prefill-token-threshold-adaptive mm-device-do-normalize mm-encoder-only monokernel
    multi-step-stream-outputs numa-bind ray-workers-use-nsight return-sampling-mask
    return-tokens-as-token-ids scheduler-reserve-full-isl skip-mm-profiling skip-tokenizer-init
    sleep-mode-offload-cudagraph specialize-active-lora speculative-disable-mqa-scorer stats
    swa-bounded-replay tokens-only trust-remote-code trust-request-chat-template
    trust-request-mm-kwargs use-fp64-gumbel use-gpu-for-pooling-score use-replayssm
    use-tqdm-on-load use-v2-block-manager worker-use-ray
    """
)
# Any number of values may follow.
LISTS = _names(
    """
    allowed-headers allowed-media-domains allowed-methods allowed-origins api-key
    collect-detailed-traces cpu-offload-params cuda-graph-sizes cudagraph-capture-sizes
    device-ids kv-cache-dtype-skip-layers logits-processors lora-modules lora-target-modules
    middleware numa-bind-cpus numa-bind-nodes offload-params prompt-adapters served-model-name
    sleep-preserve-parameter-names
    """
)
# One value follows.
VALUES = _names(
    """
    additional-config all2all-backend allowed-local-media-path
    anthropic-disabled-thinking-effort api-server-count attention-backend attention-config
    aux-output-config block-size chat-template chat-template-content-format code-revision
    cohere-format compilation-config config config-format convert cp-kv-cache-interleave-size
    cpu-distributed-timeout-seconds cpu-offload-gb custom-histogram-buckets
    data-parallel-address data-parallel-backend data-parallel-rank data-parallel-rpc-port
    data-parallel-size data-parallel-size-local data-parallel-start-rank
    data-parallel-supervisor-port dbo-decode-token-threshold dbo-prefill-token-threshold
    dcp-comm-backend dcp-kv-cache-interleave-size decode-context-parallel-size
    default-chat-template-kwargs default-mm-loras device device-memory-utilization
    diffusion-config disable-access-log-for-endpoints distributed-executor-backend
    distributed-timeout-seconds download-dir dp-supervisor-probe-failure-threshold
    dp-supervisor-probe-interval-s dp-supervisor-probe-timeout-s dp-sync-interval dtype
    ec-manager-config ec-transfer-config elastic-ep-max-dp-size engram-config eplb-config
    eplb-step-interval eplb-window-size expert-placement-strategy fault-tolerance-config
    fingerprint-mode fingerprint-value gdn-prefill-backend generation-config
    gpu-memory-utilization grpc-port guided-decoding-backend h11-max-header-count
    h11-max-incomplete-event-size hf-config-path hf-overrides hf-token host ignore-patterns
    io-processor-plugin ir-op-priority jit-monitor-mode kda-decode-backend kda-prefill-backend
    kernel-config kv-cache-dtype kv-cache-memory-bytes kv-cache-metrics-sample kv-events-config
    kv-offloading-backend kv-offloading-size kv-transfer-config limit-mm-per-prompt
    linear-backend load-format log-config-file log-level logging-config logits-processor-pattern
    logprobs-mode long-lora-scaling-factors long-prefill-token-threshold lora-dtype
    lora-extra-vocab-size mamba-backend mamba-block-size mamba-cache-dtype mamba-cache-mode
    mamba-cache-philox-rounds mamba-ssm-cache-dtype mamba-ssu-algorithm master-addr master-port
    max-context-len-to-capture max-cpu-loras max-cudagraph-capture-size max-log-len max-logprobs
    max-long-partial-prefills max-lora-cls-labels max-lora-rank max-loras max-model-len
    max-num-active-seqs max-num-batched-tokens max-num-partial-prefills max-num-queued-reqs
    max-num-queued-tokens max-num-scheduled-tokens max-num-seqs max-parallel-loading-workers
    max-prompt-adapter-token max-prompt-adapters max-seq-len-to-capture media-io-kwargs
    mm-encoder-attn-backend mm-encoder-attn-dtype mm-encoder-fp8-scale-path
    mm-encoder-fp8-scale-save-margin mm-encoder-fp8-scale-save-path mm-encoder-tp-mode
    mm-hasher-algorithm mm-ipc-gpu-memory-gb mm-processor-cache-gb mm-processor-cache-type
    mm-processor-device mm-processor-kwargs mm-shm-cache-max-object-size-mb mm-tensor-ipc model
    model-class-overrides model-impl model-loader-extra-config moe-backend
    ngram-prompt-lookup-max ngram-prompt-lookup-min nnodes node-rank num-gpu-blocks-override
    num-lookahead-slots num-redundant-experts num-scheduler-steps num-speculative-tokens
    offload-backend offload-group-size offload-num-in-group offload-prefetch-step
    optimization-level otlp-traces-endpoint override-attention-dtype override-generation-config
    override-neuron-config override-pooler-config per-request-spec-decode-metrics
    performance-mode pipeline-parallel-size pooler-config port preemption-mode
    prefill-context-parallel-size prefill-schedule-interval prefix-cache-retention-interval
    prefix-caching-hash-algo prefix-match-unit profiler-config pt-load-map-location
    qlora-adapter-name-or-path quantization quantization-config quantization-param-path
    reasoning-config reasoning-effort-map reasoning-parser reasoning-parser-plugin
    renderer-num-workers replayssm-buffer-len response-role revision root-path rope-scaling
    rope-theta runner safetensors-load-strategy safetensors-prefetch-block-size
    safetensors-prefetch-num-threads scheduler-cls scheduler-delay-factor scheduling-policy seed
    seed-listen-host seed-listen-port seed-source-host seed-source-port seed-token
    show-hidden-metrics-for-version shutdown-timeout sleep-mode-backend
    sparse-indexer-topk-backend spec-decoding-acceptance-method spec-method spec-model
    spec-tokens speculative-config speculative-disable-by-batch-size
    speculative-draft-tensor-parallel-size speculative-max-model-len speculative-model
    speculative-model-quantization sse-keep-alive-interval ssl-ca-certs ssl-cert-reqs
    ssl-certfile ssl-ciphers ssl-keyfile stream-interval structured-outputs-config swap-space
    task tensor-parallel-size tokenizer tokenizer-mode tokenizer-pool-extra-config
    tokenizer-pool-size tokenizer-pool-type tokenizer-revision tool-call-parser
    tool-parser-plugin tool-server tool-strict-level typical-acceptance-sampler-posterior-alpha
    typical-acceptance-sampler-posterior-threshold ubatch-size uds uvicorn-log-level version
    video-pruning-method video-pruning-rate watchdog-config watermark watermark-config
    weight-cache-draft-master-port weight-cache-health-host weight-cache-health-port
    weight-cache-master-port weight-cache-socket-dir weight-transfer-config worker-cls
    worker-extension-cls
    """
)
# Of `vllm bench` and the scripts before it; they say what is sent, not what is held.
BENCH = _names(
    """
    backend batch-size dataset dataset-name dataset-path input-len n num-iters num-iters-warmup
    num-prompts output-json output-len prefix-len random-input-len random-output-len
    random-range-ratio use-beam-search profile input-file output-file
    """
)
BENCH_BOOLEANS = frozenset(("use-beam-search", "profile", "async-engine", "disable-detokenize"))

# Source: vLLM 0.33.0, vllm/engine/arg_utils.py; -O too, which may carry its value: -O3.
SHORT: Mapping[str, str] = {
    "-tp": "tensor-parallel-size",
    "-pp": "pipeline-parallel-size",
    "-dp": "data-parallel-size",
    "-dcp": "decode-context-parallel-size",
    "-pcp": "prefill-context-parallel-size",
    "-ep": "enable-expert-parallel",
    "-q": "quantization",
    "-sc": "speculative-config",
    "-cc": "compilation-config",
    "-ac": "attention-config",
    "-asc": "async-scheduling",
    "-dc": "diffusion-config",
    "-O": "optimization-level",
    "-n": "nnodes",
    "-r": "node-rank",
    "-dpn": "data-parallel-rank",
    "-dpr": "data-parallel-start-rank",
    "-dpl": "data-parallel-size-local",
    "-dpa": "data-parallel-address",
    "-dpp": "data-parallel-rpc-port",
    "-dpb": "data-parallel-backend",
    "-dph": "data-parallel-hybrid-lb",
    "-dpe": "data-parallel-external-lb",
    "-dpm": "data-parallel-multi-port-external-lb",
    "-i": "input-file",
    "-o": "output-file",
    "-spec-draft-tp": "speculative-draft-tensor-parallel-size",
}
# Names that a later release replaced, and a neutral name of 0.33's.
RENAMED: Mapping[str, str] = {
    "device-memory-utilization": "gpu-memory-utilization",
    "max-context-len-to-capture": "max-seq-len-to-capture",
}
# Keys of speculative_config as flags of their own, before 0.8.3.
SPECULATIVE: Mapping[str, str] = {
    "speculative-model": "model",
    "num-speculative-tokens": "num_speculative_tokens",
    "ngram-prompt-lookup-max": "prompt_lookup_max",
    "ngram-prompt-lookup-min": "prompt_lookup_min",
    "speculative-draft-tensor-parallel-size": "draft_tensor_parallel_size",
    "speculative-disable-by-batch-size": "disable_by_batch_size",
    "speculative-max-model-len": "max_model_len",
    "speculative-model-quantization": "quantization",
    "spec-method": "method",
    "spec-model": "model",
    "spec-tokens": "num_speculative_tokens",
}
# They change the model, what runs, or the memory, in ways that are not planned: said, not silent.
NOTED: Mapping[str, str] = {
    "additional-config": "what it changes depends on the platform",
    "convert": "pooling models are planned as text generators",
    "enable-prompt-adapter": "adapters take memory that is not planned",
    "hf-config-path": "the model's own configuration is planned",
    "hf-overrides": "the model's configuration is planned as it is",
    "kv-transfer-config": "a KV connector may change the cache's layout and add buffers",
    "language-model-only": "the vision and audio towers are planned all the same",
    "mm-encoder-only": "the language model is planned all the same",
    "mm-ipc-gpu-memory-gb": "that memory is not planned",
    "num-redundant-experts": "copies of experts are not planned",
    "num-scheduler-steps": "multi-step scheduling is not planned",
    "optimization-level": "its CUDA graphs are planned as by default",
    "quantization-config": "the weights are planned as the checkpoint holds them",
    "rope-scaling": "the model's configuration is planned as it is",
    "rope-theta": "the model's configuration is planned as it is",
    "runner": "pooling models are planned as text generators",
    "skip-mm-profiling": "image and audio input is planned as profiled",
    "task": "pooling models are planned as text generators",
    "ubatch-size": "micro-batches are not planned",
}
