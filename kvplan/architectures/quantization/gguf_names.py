"""What a checkpoint's matrices are called in a GGUF file, and what the conversion cuts up.

Sources: ggml-org/llama.cpp@0c1e57098 gguf-py/gguf/tensor_mapping.py (names) and conversion/ (which
class becomes which architecture, and what it does to its tensors).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from kvplan.architectures.blocks import Weights
from kvplan.errors import NotModelledError
from kvplan.models.caches import LatentCache
from kvplan.models.spec import ModelSpec
from kvplan.models.weights import Weight

ARCHITECTURES: Mapping[str, str] = MappingProxyType(
    {
        "bloom": "bloom",
        "cohere": "command-r",
        "cohere2": "cohere2",
        "deepseek_v2": "deepseek2",
        "deepseek_v3": "deepseek2",
        "ernie4_5": "ernie4_5",
        "falcon": "falcon",
        "gemma": "gemma",
        "gemma2": "gemma2",
        "gemma3": "gemma3",
        "gemma3_text": "gemma3",
        "glm4_moe": "glm4moe",
        "glm4_moe_lite": "deepseek2",
        "gpt2": "gpt2",
        "gpt_neox": "gptneox",
        "gpt_oss": "gpt-oss",
        "granite": "granite",
        "kimi_k2": "deepseek2",
        "llama": "llama",
        "minimax_m2": "minimax-m2",
        "ministral3": "mistral3",
        "mistral": "llama",
        "mistral3": "mistral3",
        "mixtral": "llama",
        "olmo": "olmo",
        "olmo2": "olmo2",
        "olmo3": "olmo2",
        "olmoe": "olmoe",
        "phi": "phi2",
        "phi3": "phi3",
        "qwen2": "qwen2",
        "qwen2_5_vl": "qwen2vl",
        "qwen2_moe": "qwen2moe",
        "qwen2_vl": "qwen2vl",
        "qwen3": "qwen3",
        "qwen3_moe": "qwen3moe",
        "qwen3_vl": "qwen3vl",
        "qwen3_vl_moe": "qwen3vlmoe",
        "seed_oss": "seed_oss",
        "smollm3": "smollm3",
        "stablelm": "stablelm",
        "starcoder2": "starcoder2",
    }
)
"""llama.cpp's architecture by ``model_type``: those whose conversion was read."""

# Converted with their modules for multi-token prediction as further layers: conversion/glm.py.
_KEEPS_MTP = frozenset({"glm4_moe"})
# src/models/: the architectures with a "70B", and how many layers make one. Multi-head models
# of llama's class are a "65B" instead.
_LARGE: Mapping[str, int] = MappingProxyType({"llama": 80, "olmo": 80, "qwen2": 80})

_MODULES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "token_embd": ("embed_tokens", "word_embeddings", "wte", "embed_in"),
        "position_embd": ("wpe", "embed_positions"),
        "output": ("lm_head", "embed_out"),
        "attn_q": ("self_attn.q_proj",),
        "attn_k": ("self_attn.k_proj",),
        "attn_v": ("self_attn.v_proj",),
        "attn_qkv": (
            "self_attn.qkv_proj",
            "self_attention.query_key_value",
            "attention.query_key_value",
            "attn.c_attn",
        ),
        "attn_output": (
            "self_attn.o_proj",
            "self_attn.dense",
            "self_attention.dense",
            "attention.dense",
            "attn.c_proj",
        ),
        "attn_q_a": ("self_attn.q_a_proj",),
        "attn_q_b": ("self_attn.q_b_proj",),
        "attn_kv_a_mqa": ("self_attn.kv_a_proj_with_mqa",),
        "ffn_gate": ("mlp.gate_proj",),
        "ffn_up": (
            "mlp.up_proj",
            "mlp.gate_up_proj",
            "mlp.fc1",
            "mlp.c_fc",
            "mlp.dense_h_to_4h",
        ),
        "ffn_down": ("mlp.down_proj", "mlp.fc2", "mlp.c_proj", "mlp.dense_4h_to_h"),
        "ffn_gate_exps": ("mlp.experts.gate_proj", "block_sparse_moe.experts.w1"),
        "ffn_up_exps": (
            "mlp.experts.up_proj",
            "block_sparse_moe.experts.w3",
            # There gate and up are two tensors of the same type, and rows of the same length.
            "mlp.experts.gate_up_proj",
        ),
        "ffn_down_exps": ("mlp.experts.down_proj", "block_sparse_moe.experts.w2"),
        "ffn_gate_shexp": ("mlp.shared_expert.gate_proj", "mlp.shared_experts.gate_proj"),
        "ffn_up_shexp": ("mlp.shared_expert.up_proj", "mlp.shared_experts.up_proj"),
        "ffn_down_shexp": ("mlp.shared_expert.down_proj", "mlp.shared_experts.down_proj"),
        "ffn_gate_inp": ("mlp.gate", "mlp.router", "block_sparse_moe.gate"),
        "ffn_gate_inp_shexp": ("mlp.shared_expert_gate",),
        "nextn.eh_proj": ("eh_proj",),
        "nextn.shared_head_head": ("shared_head.head",),
        "attn_k_b": ("attn_k_b",),  # these three are cut out or added below
        "attn_v_b": ("attn_v_b",),
        "rope_freqs": ("rope_freqs",),
    }
)
_NAMES = MappingProxyType(
    {module: name for name, modules in _MODULES.items() for module in modules}
)


def architecture_of(spec: ModelSpec) -> str:
    """llama.cpp's name for the architecture.

    Raises:
        NotModelledError: its conversion is not known here.
    """
    name = ARCHITECTURES.get(spec.model_type)
    if name is None:
        raise NotModelledError(
            f"What a GGUF file of a {spec.model_type[:40]!r} model holds is not modelled.",
            hint="Name the GGUF file itself, or plan with another format of weights.",
        )
    return name


def is_large(spec: ModelSpec) -> bool:
    """Whether llama.cpp calls the model a 70B, which has rules of its own."""
    name = ARCHITECTURES.get(spec.model_type, "")
    if len(spec.layers) != _LARGE.get(name):
        return False
    return name != "llama" or shared_by(spec) > 1


def shared_by(spec: ModelSpec) -> int:
    """Query heads that share a KV head in the first layer; all of them with latent attention."""
    for cache in spec.layers[0].caches:
        if isinstance(cache, LatentCache):
            return spec.attention_heads
        kv_heads = getattr(cache, "kv_heads", 0)
        if kv_heads:
            return int(spec.attention_heads // kv_heads)
    return 0


def as_converted(spec: ModelSpec) -> Weights:
    """The weights as the conversion stores them; towers apart, which go into another file.

    Latent attention's joint matrix is cut in two and one half transposed; modules for multi-token
    prediction are left out by most classes; scaled rotary positions become a vector.
    """
    weights: Weights = ()
    for weight in spec.weights:
        if weight.component == "mtp" and spec.model_type not in _KEEPS_MTP:
            continue
        joint = weight.name == "self_attn.kv_b_proj.weight"
        weights += _halves(weight, spec) if joint else (weight,)
    return weights + _rotary(spec)


def tensor_name(weight: Weight) -> str:
    """The name within a layer, or of the whole: ``attn_q.weight``.

    Raises:
        NotModelledError: a matrix whose name there is not known.
    """
    module, _, kind = weight.name.partition("[")[0].rpartition(".")
    if weight.component == "mtp" and module == "embed_tokens":
        return "nextn.embed_tokens.weight"
    name = _NAMES.get(module)
    if name is not None:
        return f"{name}.{kind}"
    if len(weight.shape) > 1 and kind == "weight":
        raise NotModelledError(
            f"What becomes of {weight.name[:60]!r} in a GGUF file is not modelled.",
            hint="Name the GGUF file itself, or plan with another format of weights.",
        )
    return weight.name


def _halves(weight: Weight, spec: ModelSpec) -> Weights:
    """``kv_b_proj`` of (heads × (nope + value), latent) as the absorbed matrices.

    conversion/deepseek.py: keys become heads × (latent, nope), values stay heads × (value, latent).
    """
    heads = spec.attention_heads
    rows, latent = weight.shape[0], weight.shape[1]
    value = _value_dim(spec)
    nope = rows // heads - value
    halves = (("attn_k_b", (heads * latent, nope)), ("attn_v_b", (heads * value, latent)))
    return tuple(
        weight.model_copy(update={"name": f"{name}.weight", "shape": shape})
        for name, shape in halves
    )


def _value_dim(spec: ModelSpec) -> int:
    for weight in spec.weights:
        if weight.name == "self_attn.o_proj.weight":
            return weight.shape[1] // spec.attention_heads
    raise NotModelledError(
        "Latent attention without an output projection is not modelled.",
        hint="Plan with another format of weights.",
    )


def _rotary(spec: ModelSpec) -> Weights:
    if spec.rope_scaling != "llama3":
        return ()
    head_dim = next((getattr(cache, "head_dim", 0) for cache in spec.caches), 0)
    if not head_dim:
        return ()
    table = Weight(
        name="rope_freqs.weight",
        component="other",
        shape=(head_dim // 2,),
        place="embedding",
        elements=0,  # computed, not learned
    )
    return (table,)
