"""Small configurations, one a kind of layer: they can be allocated and run on a CPU."""

from __future__ import annotations

from typing import Any

from kvplan.architectures import read_model
from kvplan.models.facts import ModelFacts
from kvplan.models.spec import ModelSpec

Config = dict[str, Any]

_COMMON: Config = {
    "torch_dtype": "bfloat16",
    "hidden_size": 128,
    "intermediate_size": 352,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "vocab_size": 1000,
    "max_position_embeddings": 512,
    "tie_word_embeddings": False,
}

SMALL: dict[str, Config] = {
    "GQA": {"model_type": "llama", "architectures": ["LlamaForCausalLM"], **_COMMON},
    "window": {
        "model_type": "gemma3_text",
        "architectures": ["Gemma3ForCausalLM"],
        **_COMMON,
        "head_dim": 32,
        "sliding_window": 64,
        "num_hidden_layers": 6,
    },
    "MoE": {
        "model_type": "qwen3_moe",
        "architectures": ["Qwen3MoeForCausalLM"],
        **_COMMON,
        "head_dim": 32,
        "num_experts": 8,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 96,
    },
    "MLA": {
        "model_type": "deepseek_v3",
        "architectures": ["DeepseekV3ForCausalLM"],
        **_COMMON,
        "q_lora_rank": 48,
        "kv_lora_rank": 64,
        "qk_nope_head_dim": 32,
        "qk_rope_head_dim": 16,
        "v_head_dim": 32,
        "n_routed_experts": 8,
        "n_shared_experts": 1,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 96,
        "first_k_dense_replace": 1,
        "n_group": 1,
        "topk_group": 1,
        "num_nextn_predict_layers": 0,
    },
    "Mamba hybrid": {
        "model_type": "granitemoehybrid",
        "architectures": ["GraniteMoeHybridForCausalLM"],
        **_COMMON,
        "layer_types": ["mamba", "mamba", "attention", "mamba"],
        "mamba_n_heads": 8,
        "mamba_d_head": 32,
        "mamba_d_state": 16,
        "mamba_n_groups": 1,
        "mamba_d_conv": 4,
        "mamba_expand": 2,
        "num_local_experts": 4,
        "num_experts_per_tok": 2,
        "shared_intermediate_size": 64,
    },
    "encoder-decoder": {
        "model_type": "whisper",
        "architectures": ["WhisperForConditionalGeneration"],
        "torch_dtype": "float16",
        "d_model": 128,
        "encoder_layers": 2,
        "decoder_layers": 3,
        "encoder_attention_heads": 4,
        "decoder_attention_heads": 4,
        "encoder_ffn_dim": 256,
        "decoder_ffn_dim": 256,
        "num_mel_bins": 80,
        "max_source_positions": 64,
        "max_target_positions": 128,
        "vocab_size": 1000,
    },
}


def small_model(name: str) -> ModelSpec:
    """One of them, read as a user's configuration would be."""
    return read_model(ModelFacts(id=f"small/{name}", config=SMALL[name], source="a test"))
