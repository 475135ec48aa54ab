"""Ollama's log, 0.1 to 0.33: its server's lines, its own engine's, and those of llama.cpp below it.

Its server prints sizes with a unit and one digit. What its scheduler only estimated is not read.
"""

from __future__ import annotations

from collections.abc import Mapping

from kvplan.sources.logs import llamacpp
from kvplan.sources.logs.engine_log import EngineLog
from kvplan.sources.logs.facts import Fact, Value, count, human, text
from kvplan.sources.logs.starts import OTHER_FAILURE, STARTED
from kvplan.sources.logs.unsure import unsure_ollama
from kvplan.sources.logs.wording import wording

_TOTAL = human()
# A runner that is told to close its model is sent the same sentence with zeros.
_POSITIVE = Fact(r"\d{1,12}", lambda written: int(written) or None, "last")

FACTS: Mapping[str, Fact] = {
    **llamacpp.FACTS,
    "engine_version": text(r"\d[\w.+-]{0,60}", "last"),
    "blob": text(r"[^\s\"]{1,300}", "last"),
    "ctx_size": count("last"),
    "parallel": _POSITIVE,
    "batch_size": _POSITIVE,
    "kv_size": _POSITIVE,
    "kv_cache_type": text(r"\w*", "last"),
    "compute_name": text(r"[^\"]{1,100}"),
    "compute_total_gib": Fact(_TOTAL.pattern, _TOTAL.read),
    "device_weights_gib": human("last"),
    "device_kv_gib": human("last"),
    "device_graph_gib": human("last"),
}


def derive(values: Mapping[str, Value]) -> dict[str, Value]:
    """As in llama.cpp; the context of one request from that of all."""
    found = llamacpp.derive(values)
    total, parallel = values.get("kv_size", values.get("ctx_size")), values.get("parallel")
    if isinstance(total, int) and isinstance(parallel, int) and parallel > 0:
        found["max_model_len"] = total // parallel
    return found


OLLAMA = EngineLog(
    name="ollama",
    facts=FACTS,
    wordings=(
        # server/routes.go@v0.1.48 … v0.32.14
        wording("Listening on {} (version {engine_version})", FACTS),
        # gpu/types.go@v0.1.48, discover/types.go@v0.3.14 … v0.11.11
        wording(
            'msg="inference compute" {} name="{compute_name}" total="{compute_total_gib}"',
            FACTS,
            needle="inference compute",
        ),
        # discover/types.go@v0.12.11 … v0.32.14
        wording(
            'msg="inference compute" {} description="{compute_name}" {} '
            'total="{compute_total_gib}"',
            FACTS,
            needle="inference compute",
        ),
        # llm/server.go@v0.1.48 … v0.20.0, llm/llama_server.go@v0.32.14; those without a model
        # only look for devices.
        wording("starting {}--model {blob} ", FACTS, needle="--model ", begins="server"),
        wording("starting {}--ctx-size {ctx_size} ", FACTS, needle="--ctx-size ", opens=False),
        wording("starting {}--parallel {parallel} ", FACTS, needle="--parallel ", opens=False),
        # runner/ollamarunner/runner.go@v0.11.11 … v0.20.0
        wording(
            "Parallel:{parallel} BatchSize:{batch_size} FlashAttention:{} KvSize:{kv_size} "
            "KvCacheType:{kv_cache_type} NumThreads:",
            FACTS,
            needle="KvCacheType:",
            opens=False,
        ),
        # ml/backend/ggml/ggml.go@v0.6.8 … v0.9.6, ml/device.go@v0.12.11 … v0.32.14
        wording(
            'msg="model weights" {}={device} size="{device_weights_gib}"',
            FACTS,
            needle="model weights",
        ),
        wording('msg="kv cache" {}={device} size="{device_kv_gib}"', FACTS, needle="kv cache"),
        wording(
            'msg="compute graph" {}={device} {}size="{device_graph_gib}"',
            FACTS,
            needle="compute graph",
        ),
        # llm/server.go@v0.1.48 … v0.20.0, llm/llama_server.go@v0.32.14
        wording("llama runner started in", FACTS, outcome=STARTED, opens=False),
        wording("llama-server started in", FACTS, outcome=STARTED, opens=False),
        # server/sched.go@v0.20.0, llm/server.go@v0.11.11 … v0.20.0
        wording(
            "model request too large for system",
            FACTS,
            outcome="not_enough_free_memory",
            opens=False,
        ),
        wording(
            "model is too large for system memory",
            FACTS,
            outcome="not_enough_free_memory",
            opens=False,
        ),
        wording('msg="Load failed"', FACTS, needle="Load failed", outcome=OTHER_FAILURE),
    ),
    order={
        **llamacpp.ORDER,
        "engine_version": ("engine_version",),
        "model": ("model_path", "blob"),
        "gpu": ("gpu_name", "compute_name"),
        "gpu_total_gib": ("compute_total_gib",),
        "max_num_seqs": ("n_seq_max", "parallel"),
        "max_model_len": ("n_ctx_seq",),
        "kv_tokens": ("n_ctx", "kv_size", "ctx_size"),
        "kv_cache_dtype": ("kv_cache_type",),
        "weights_gib": ("device_weights_gib", "model_buffer_gib"),
        "available_kv_gib": ("device_kv_gib",),
        "activation_peak_gib": ("device_graph_gib", "compute_buffer_gib"),
        "n_batch": ("n_batch", "batch_size"),
    },
    derive=derive,
    carried=frozenset({"engine_version", "compute_name", "compute_total_gib"}),
    rank_of=llamacpp.gpu_of,
    unsure=unsure_ollama,
)
