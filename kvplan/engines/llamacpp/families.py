"""What llama.cpp makes of an architecture, where the model's own layers leave it open.

Sources: ggml-org/llama.cpp@0c1e57098 src/models/ (``swa_type`` of each), src/llama-arch.cpp
(``llm_arch_supports_rs_rollback``) and conversion/ (the ``model_type`` that becomes which).
"""

from __future__ import annotations

from kvplan.models.spec import ModelSpec

# Configurations of the Hub whose windows llama.cpp keeps as windows. What is not here is cached
# whole: Mistral, Phi-3, Qwen, StarCoder2 and all others.
_WINDOWED = frozenset(
    {
        "afmoe",
        "cohere2",
        "exaone4",
        "exaone_moe",
        "gemma2",
        "gemma3",
        "gemma3_text",
        "gemma3n",
        "gemma3n_text",
        "gemma4",
        "gemma4_text",
        "gpt_oss",
        "llama4",
        "llama4_text",
        "mimo_v2",
        "mimo_v2_flash",
        "olmo3",
        "plamo3",
        "smallthinker",
        "step3p5",
    }
)
# States that can be rolled back when drafted tokens are rejected.
_ROLLBACK = frozenset(
    {
        "lfm2",
        "lfm2moe",
        "lfm2_moe",
        "nemotron_h",
        "nemotron_h_moe",
        "qwen35",
        "qwen35moe",
        "qwen3_5",
        "qwen3_5_text",
        "qwen3_5_moe",
        "qwen3_5_moe_text",
    }
)


def is_gguf(spec: ModelSpec) -> bool:
    """Whether the model was read from a GGUF file, whose layers are llama.cpp's own."""
    return spec.architecture.startswith("GGUF ")


def keeps_windows(spec: ModelSpec) -> bool:
    """Whether layers with a window have a cache of their own size."""
    return is_gguf(spec) or spec.model_type in _WINDOWED


def rolls_back(spec: ModelSpec) -> bool:
    """Whether recurrent states are kept several times over for drafted tokens."""
    return spec.model_type in _ROLLBACK
