"""Small configurations of several families: only the fields that decide a size."""

from __future__ import annotations

from typing import Any

Config = dict[str, Any]

FALCON: Config = {
    "model_type": "falcon",
    "hidden_size": 4544,
    "num_attention_heads": 71,
    "num_hidden_layers": 2,
    "vocab_size": 65024,
}

GEMMA3: Config = {
    "model_type": "gemma3_text",
    "hidden_size": 2560,
    "intermediate_size": 10240,
    "num_hidden_layers": 12,
    "sliding_window": 1024,
}

MISTRAL: Config = {
    "model_type": "mistral",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 2,
    "num_attention_heads": 32,
    "vocab_size": 32000,
}

QWEN2: Config = {
    "model_type": "qwen2",
    "hidden_size": 896,
    "intermediate_size": 4864,
    "num_hidden_layers": 4,
    "num_attention_heads": 14,
    "num_key_value_heads": 2,
    "vocab_size": 151936,
    "sliding_window": 32768,
    "max_window_layers": 3,
}

DEEPSEEK: Config = {
    "model_type": "deepseek_v3",
    "hidden_size": 7168,
    "intermediate_size": 18432,
    "num_hidden_layers": 5,
    "num_attention_heads": 128,
    "vocab_size": 129280,
}

VISION: Config = {
    "hidden_size": 1152,
    "image_size": 896,
    "intermediate_size": 4304,
    "num_attention_heads": 16,
    "num_hidden_layers": 27,
    "patch_size": 14,
    "vision_use_head": False,
}
