"""How llama.cpp reads each architecture where the metadata leaves it open: one literal table.

Source: ggml-org/llama.cpp@0c1e57098 src/models/ (``load_arch_hparams`` of each).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple

_CHUNK = 8192  # Llama 4: src/models/llama4.cpp


class GgufFamily(NamedTuple):
    """How llama.cpp reads one architecture.

    Attributes:
        period: Of so many layers the last is full, the others have a window; 0: all have one.
            None: there are no windows.
        window: Tokens, where the metadata may leave them out.
        local: What the others have.
        recurrent: Layers that keep a state: those without KV heads, all but every n-th, or none.
        parallel: Layers keep a state beside their attention.
        indexer: Every layer keeps the keys of a sparse indexer.
    """

    period: int | None = None
    window: int | None = None
    local: Literal["window", "chunk"] = "window"
    recurrent: Literal["no", "headless", "interval"] = "no"
    parallel: bool = False
    indexer: bool = False


_PLAIN = GgufFamily()
_HYBRID = GgufFamily(recurrent="headless")
_INTERVAL = GgufFamily(recurrent="interval")

GGUF_FAMILIES: Mapping[str, GgufFamily] = MappingProxyType(
    dict.fromkeys(
        (
            "arcee",
            "bloom",
            "command-r",
            "deci",
            "deepseek2",
            "dots1",
            "ernie4_5",
            "ernie4_5-moe",
            "exaone",
            "falcon",
            "gemma",
            "glm4",
            "glm4moe",
            "gpt2",
            "gptneox",
            "granite",
            "granitemoe",
            "hunyuan-dense",
            "hunyuan-moe",
            "internlm2",
            "llama",
            "minimax-m2",
            "mistral3",
            "nemotron",
            "olmo",
            "olmoe",
            "openelm",
            "orion",
            "phi2",
            "phi3",  # its window is read and set aside there: src/models/phi3.cpp
            "qwen2",
            "qwen2moe",
            "qwen2vl",
            "qwen3",
            "qwen3moe",
            "qwen3vl",
            "qwen3vlmoe",
            "seed_oss",
            "smollm3",
            "stablelm",
            "starcoder2",
        ),
        _PLAIN,
    )
    | {
        "cohere2": GgufFamily(period=4),
        "deepseek32": GgufFamily(indexer=True),
        "exaone4": GgufFamily(period=4, window=4096),
        "gemma2": GgufFamily(period=2, window=4096),
        "gemma3": GgufFamily(period=6),
        "gemma3n": GgufFamily(period=5),
        "gemma4": GgufFamily(period=6),
        "gpt-oss": GgufFamily(period=2),
        "llama4": GgufFamily(period=4, window=_CHUNK, local="chunk"),
        "olmo2": GgufFamily(period=4),
        "granitehybrid": _HYBRID,
        "jamba": _HYBRID,
        "lfm2": _HYBRID,
        "lfm2moe": _HYBRID,
        "mamba": _HYBRID,
        "mamba2": _HYBRID,
        "nemotron_h": _HYBRID,
        "nemotron_h_moe": _HYBRID,
        "qwen35": _INTERVAL,
        "qwen35moe": _INTERVAL,
        "qwen3next": _INTERVAL,
        "falcon-h1": GgufFamily(parallel=True),
    }
)
