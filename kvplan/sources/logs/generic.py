"""Sentences that several engines print, of whichever start is being read."""

from __future__ import annotations

from kvplan.sources.logs.engine_log import EngineLog
from kvplan.sources.logs.starts import OUT_OF_MEMORY, STARTED
from kvplan.sources.logs.wording import wording

ANY = EngineLog(
    name="",
    facts={},
    wordings=(
        # uvicorn, which serves vLLM, SGLang and trtllm-serve.
        wording("Application startup complete", {}, outcome=STARTED),
        # torch's exception, whatever raised it; ROCm's says HIP.
        wording("CUDA out of memory", {}, outcome=OUT_OF_MEMORY),
        wording("HIP out of memory", {}, outcome=OUT_OF_MEMORY),
        # ggml/src/ggml-cuda/ggml-cuda.cu, TensorRT-LLM's cudaMalloc.
        wording("cudaMalloc{}out of memory", {}, needle="out of memory", outcome=OUT_OF_MEMORY),
    ),
    order={},
)
