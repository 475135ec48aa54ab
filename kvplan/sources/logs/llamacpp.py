"""The log of llama.cpp's programs (llama-server, llama-cli), mid-2024 to 2026.

Every buffer is printed with its device, in MiB. A program may load the model several times to
find out how much of it fits: the last time counts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from kvplan.sources.logs.engine_log import EngineLog
from kvplan.sources.logs.facts import Fact, Value, count, mib, text
from kvplan.sources.logs.lines import MIXED
from kvplan.sources.logs.starts import OTHER_FAILURE, STARTED
from kvplan.sources.logs.unsure import unsure_llamacpp
from kvplan.sources.logs.wording import wording

_TYPE = r"\w{1,16}"
# clip.cpp prints the image encoder's buffers with the same words as the model's.
_ENCODER = "alloc_compute_meta|reserve_compute_meta|clip"
_GIB_DIGITS = 6

FACTS = {
    "device": text(r"[A-Za-z]+\d*(?:_[A-Za-z]+)*"),
    "encoder": text(_ENCODER),
    "component": text(rf"\b(?!{_ENCODER})[A-Za-z_]\w*"),
    "build": Fact(r"[1-9]\d{0,6}", lambda written: f"b{written}", "last"),
    "model_path": text(r"\S.{0,299}?", "last"),
    "file_type": text(r"[\w .-]{1,60}?", "last"),
    "gpu_name": text(r"(?:[^()]|\([^()]*\)){1,100}?", of_rank=True),
    "free_gib": mib("last"),
    "n_ctx": count(),
    "n_ctx_seq": count(),
    "n_seq_max": count(),
    # What the server says of its slots, where the log level hides what the contexts say.
    "slots": count("last"),
    "slot_ctx": count("last"),
    "n_batch": count(),
    "n_ubatch": count(),
    "type_k": text(_TYPE),
    "type_v": text(_TYPE),
    "offloaded_layers": count("last"),
    "model_layers": count("last"),
    "model_buffer_gib": mib("sum"),
    "kv_buffer_gib": mib("sum"),
    "rs_buffer_gib": mib("sum"),
    "compute_buffer_gib": mib(),
}
# All that a further load of the model says anew.
_OF_A_LOAD = (
    *("n_ctx", "n_ctx_seq", "n_seq_max", "n_batch", "n_ubatch", "type_k", "type_v"),
    *("model_buffer_gib", "kv_buffer_gib", "rs_buffer_gib", "compute_buffer_gib"),
)
ORDER: dict[str, tuple[str, ...]] = {
    "engine_version": ("build",),
    "model": ("model_path",),
    "gpu": ("gpu_name",),
    "quantization": ("file_type",),
    "max_model_len": ("n_ctx_seq", "slot_ctx"),
    "max_num_seqs": ("n_seq_max", "slots"),
    "weights_gib": ("model_buffer_gib",),
    "activation_peak_gib": ("compute_buffer_gib",),
    "kv_tokens": ("n_ctx",),
    "n_batch": ("n_batch",),
    "n_ubatch": ("n_ubatch",),
    "recurrent_state_gib": ("rs_buffer_gib",),
    "offloaded_layers": ("offloaded_layers",),
    "model_layers": ("model_layers",),
    "free_memory_before_start_gib": ("free_gib",),
}


def derive(values: Mapping[str, Value]) -> dict[str, Value]:
    """The cache of one device: attention and recurrent state; the type of both its halves."""
    found: dict[str, Value] = {}
    kept = [values.get(name) for name in ("kv_buffer_gib", "rs_buffer_gib")]
    parts = [part for part in kept if isinstance(part, float)]
    if parts:
        found["available_kv_gib"] = round(sum(parts), _GIB_DIGITS)
    keys, contents = values.get("type_k"), values.get("type_v")
    if keys is not None and contents is not None:
        found["kv_cache_dtype"] = keys if keys == contents else f"{keys}/{contents}"
    return found


# Names of ggml's backends (ggml/src/ggml-*/), with what their buffers add.
_GPUS = re.compile(
    r"(?:CUDA|ROCm|MUSA|HIP|Vulkan|SYCL|CANN|OpenCL|GPUOpenCL|Kompute|HTP|WebGPU|MTL)\d+"
    r"(?:_Mapped|_Private|_Split)?|(?:CUDA|ROCm|MUSA|SYCL|CANN)_Split"
    r"|(?:Metal|OpenCL|Kompute|WebGPU)(?:_Mapped|_Private)?"
)


def gpu_of(device: str) -> str | None:
    """The GPU that a buffer lies on, None for the machine's own memory, `MIXED` for neither.

    >>> gpu_of("CUDA0"), gpu_of("MTL0_Mapped"), gpu_of("CUDA_Host"), gpu_of("CPU_Mapped")
    ('CUDA0', 'MTL0', None, None)
    >>> gpu_of("CUDx0")
    '?'
    """
    if device.startswith(("CPU", "BLAS", "AMX")) or device.endswith("_Host"):
        return None
    return device.partition("_")[0] if _GPUS.fullmatch(device) else MIXED


WORDINGS = (
    # common/common.cpp (b3600 …), examples/main/main.cpp before
    wording("build: {build} (", FACTS, begins="server"),
    wording("main: build = {build} (", FACTS, begins="server"),
    # tools/server/server.cpp (b8900 …), common/common.cpp (b9400 …): the build, then the log level;
    # only the latter at the usual log level.
    wording("build_info: b{build}-", FACTS, begins="program"),
    wording("common_params_print_info: build {build} (", FACTS, begins="program"),
    wording("common_params_print_info: verbosity = ", FACTS, begins="program"),
    # src/llama-model-loader.cpp
    wording(
        "llama_model_loader: loaded meta data with {} tensors from {model_path} (version",
        FACTS,
        resets=_OF_A_LOAD,
    ),
    # tools/server/server-context.cpp
    wording("load_model: loading model '{model_path}'", FACTS),
    # tools/server/server.cpp, common/speculative.cpp: what follows is another model's, or another
    # context of the same.
    wording("loading draft model", FACTS, closes=True, opens=False),
    wording("creating MTP draft context", FACTS, closes=True, opens=False),
    # src/llama-model-loader.cpp, src/llama-model.cpp; src/llama.cpp before b4500
    wording("print_info: file type = {file_type}", FACTS, needle="print_info: file type"),
    wording("model ftype = {file_type}", FACTS, needle="model ftype"),
    # The loader, from b4500 on in src/llama.cpp
    wording(
        "using device {device} ({gpu_name}){}- {free_gib} MiB free", FACTS, needle="using device "
    ),
    # src/llama-model.cpp (load_tensors); src/llama.cpp (llm_load_tensors) before
    wording("offloaded {offloaded_layers}/{model_layers} layers to GPU", FACTS, opens=False),
    wording("{component}: {device} model buffer size = {model_buffer_gib} MiB", FACTS),
    wording(
        "llm_load_tensors: {device} buffer size = {model_buffer_gib} MiB",
        FACTS,
        needle="buffer size =",
    ),
    # src/llama-context.cpp; src/llama.cpp (llama_new_context_with_model) before
    *(
        wording(f"{function}: {printed} = {{{name}}}", FACTS, needle=f"{function}: {printed} ")
        for function in ("llama_context", "llama_new_context_with_model", "llama_init_from_model")
        for printed, name in {
            **{name: name for name in ("n_ctx", "n_ctx_seq", "n_seq_max", "n_batch", "n_ubatch")},
            "n_ctx_per_seq": "n_ctx_seq",
        }.items()
    ),
    # In src/llama-kv-cache.cpp, llama-kv-cache-unified.cpp; by llama_kv_cache_init before
    wording("{component}: {device} KV buffer size = {kv_buffer_gib} MiB", FACTS),
    wording(
        "MiB ({} cells, {} layers, {} seqs), K ({type_k}): {} MiB, V ({type_v}): ",
        FACTS,
        needle=" seqs), K (",
    ),
    # src/llama-context.cpp@b4900, src/llama.cpp before
    wording(
        "KV self size = {} MiB, K ({type_k}): {} MiB, V ({type_v}): ",
        FACTS,
        needle="KV self size ",
    ),
    # The recurrent state's, in src/llama-memory-recurrent.cpp
    wording("{component}: {device} RS buffer size = {rs_buffer_gib} MiB", FACTS),
    # That of DeepSeek-V4's compressors, in src/llama-kv-cache-dsv4.cpp
    wording(
        "{component}: {device} DSV4 {} state buffer size = {rs_buffer_gib} MiB",
        FACTS,
        needle="state buffer size =",
    ),
    wording("{encoder}{}compute buffer size =", FACTS, opens=False),
    # By sched_reserve or graph_reserve in src/llama-context.cpp; src/llama.cpp before
    wording("{component}: {device} compute buffer size = {compute_buffer_gib} MiB", FACTS),
    # tools/server/server.cpp
    wording(
        "n_slots = {slots}, n_ctx_slot = {slot_ctx}, kv_unified",
        FACTS,
        needle=", n_ctx_slot = ",
        opens=False,
    ),
    wording("main: model loaded", FACTS, outcome=STARTED, opens=False),
    wording("server is listening on http", FACTS, outcome=STARTED, opens=False),
    # The same from b9371 on
    wording("llama_server: model loaded", FACTS, outcome=STARTED, opens=False),
    wording("exiting due to model loading error", FACTS, outcome=OTHER_FAILURE, opens=False),
    # src/llama-kv-cache.cpp, src/llama-context.cpp, ggml/src/ggml-backend.cpp
    wording("failed to allocate buffer for kv cache", FACTS, outcome="no_memory_for_cache"),
    wording("failed to allocate compute", FACTS, outcome="out_of_memory_in_warm_up"),
    wording("unable to allocate {} buffer", FACTS, outcome="out_of_memory_at_load", opens=False),
    wording("error loading model", FACTS, outcome=OTHER_FAILURE, opens=False),
)

LLAMACPP = EngineLog(
    name="llama.cpp",
    facts=FACTS,
    wordings=WORDINGS,
    order=ORDER,
    derive=derive,
    rank_of=gpu_of,
    unsure=unsure_llamacpp,
)
