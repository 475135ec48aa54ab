"""Quantized checkpoints: bytes against published sizes, and what is left out of each scheme."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from kvplan.models.formats import PLAIN
from kvplan.models.spec import ModelSpec
from kvplan.models.weights import Weight, stored_bytes

Read = Callable[..., ModelSpec]
Config = dict[str, Any]

LLAMA_70B: Config = {
    "model_type": "llama",
    "hidden_size": 8192,
    "intermediate_size": 28672,
    "num_hidden_layers": 80,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "torch_dtype": "bfloat16",
}
QWEN3_8B: Config = {
    "model_type": "qwen3",
    "hidden_size": 4096,
    "intermediate_size": 12288,
    "num_hidden_layers": 36,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "vocab_size": 151936,
    "torch_dtype": "bfloat16",
}
GPT_OSS_20B: Config = {
    "model_type": "gpt_oss",
    "hidden_size": 2880,
    "intermediate_size": 2880,
    "num_hidden_layers": 24,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "num_local_experts": 32,
    "num_experts_per_tok": 4,
    "vocab_size": 201088,
}
DEEPSEEK_V3: Config = {
    "model_type": "deepseek_v3",
    "hidden_size": 7168,
    "intermediate_size": 18432,
    "num_hidden_layers": 61,
    "num_attention_heads": 128,
    "vocab_size": 129280,
    "num_nextn_predict_layers": 1,
    "torch_dtype": "bfloat16",
}


def total(spec: ModelSpec) -> int:
    return sum(stored_bytes(spec.weights, PLAIN[spec.dtype]).values())


def formats(spec: ModelSpec) -> dict[str, set[str]]:
    """Modules by number format; plain ones under the empty name."""
    found: dict[str, set[str]] = {}
    for weight in spec.weights:
        name = weight.format.name if weight.format else ""
        found.setdefault(name, set()).add(weight.name.removesuffix(".weight"))
    return found


def stored(spec: ModelSpec, name: str) -> list[Weight]:
    return [weight for weight in spec.weights if weight.name == f"{name}.weight"]


# Against published sizes


def test_mxfp4_equals_the_index_of_gpt_oss_20b(read: Read) -> None:
    """13,761,264,768 bytes: openai/gpt-oss-20b model.safetensors.index.json."""
    spec = read({**GPT_OSS_20B, "quantization_config": {"quant_method": "mxfp4"}})
    assert total(spec) == 13_761_264_768
    assert formats(spec)["mxfp4"] == {"mlp.experts.gate_up_proj", "mlp.experts.down_proj"}


def test_nvfp4_equals_the_files_of_a_llama_70b(read: Read) -> None:
    """42,709,045,632 bytes: storage size of nvidia's Llama-3.3-70B-Instruct NVFP4 build."""
    quantization = {"quant_algo": "NVFP4", "group_size": 16, "exclude_modules": ["lm_head"]}
    spec = read(LLAMA_70B, quantization={"quantization": quantization})
    assert total(spec) == 42_709_045_632
    assert spec.quantization == "modelopt nvfp4"


def test_awq_equals_the_files_of_qwen3_8b(read: Read) -> None:
    """5.68 GiB: Qwen/Qwen3-8B-AWQ."""
    quantization = {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True}
    spec = read({**QWEN3_8B, "quantization_config": quantization})
    assert math.isclose(total(spec) / 2**30, 5.68, abs_tol=0.005)


def test_block_fp8_equals_the_files_of_deepseek_v3(read: Read) -> None:
    """641.30 GiB: deepseek-ai/DeepSeek-V3-0324, with its module for multi-token prediction."""
    quantization = {"quant_method": "fp8", "weight_block_size": [128, 128]}
    spec = read({**DEEPSEEK_V3, "quantization_config": quantization})
    assert math.isclose(total(spec) / 2**30, 641.30, abs_tol=0.02)


# Bytes of one matrix, by hand: (out, in) = (1024, 4096) for key projections of Qwen 3 8B

ELEMENTS = 1024 * 4096


@pytest.mark.parametrize(
    ("settings", "size"),
    [
        ({"quant_method": "fp8"}, ELEMENTS + 4),
        ({"quant_method": "fp8", "activation_scheme": "static"}, ELEMENTS + 8),
        ({"quant_method": "fp8", "weight_block_size": None}, ELEMENTS + 4),
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, ELEMENTS + 8 * 32 * 4),
        ({"quant_method": "fbgemm_fp8"}, ELEMENTS + 1024 * 4),
        (
            {"quant_method": "awq", "bits": 4, "group_size": 128},
            ELEMENTS // 2 + 32 * 1024 * 2 + 32 * 1024 // 2,
        ),
        (
            {"quant_method": "gptq", "bits": 4, "group_size": 128},
            ELEMENTS // 2 + 32 * 1024 * 2 + 32 * 1024 // 2 + 4096 * 4,
        ),
        (
            {"quant_method": "gptq", "bits": 3, "group_size": -1},
            ELEMENTS * 3 // 8 + 1024 * 2 + 1024 * 3 // 8 + 4096 * 4,
        ),
        ({"quant_method": "modelopt", "quant_algo": "FP8"}, ELEMENTS + 8),
        (
            {"quant_method": "modelopt", "quant_algo": "NVFP4"},
            ELEMENTS // 2 + 1024 * 256 + 8,
        ),
    ],
    ids=str,
)
def test_bytes_of_a_matrix(read: Read, settings: Config, size: int) -> None:
    spec = read({**QWEN3_8B, "quantization_config": settings})
    (weight,) = stored(spec, "self_attn.k_proj")
    assert weight.stored_bytes(PLAIN["bfloat16"]) == 36 * size


def compressed(stored_as: str, **weights: Any) -> Config:
    return {
        "quant_method": "compressed-tensors",
        "format": stored_as,
        "ignore": ["lm_head"],
        "config_groups": {"group_0": {"targets": ["Linear"], "weights": weights}},
    }


@pytest.mark.parametrize(
    ("settings", "size"),
    [
        (
            compressed("pack-quantized", num_bits=4, type="int", strategy="group", group_size=32),
            ELEMENTS // 2 + 128 * 1024 * 2 + 16,
        ),
        (
            compressed("pack-quantized", num_bits=8, type="int", strategy="channel"),
            ELEMENTS + 1024 * 2 + 16,
        ),
        (
            compressed(
                "pack-quantized",
                num_bits=4,
                type="int",
                strategy="group",
                group_size=128,
                symmetric=False,
                actorder="group",
            ),
            ELEMENTS // 2 + 32 * 1024 * 2 + 32 * 1024 // 2 + 4096 * 4 + 16,
        ),
        (
            compressed("int-quantized", num_bits=8, type="int", strategy="channel"),
            ELEMENTS + 1024 * 4,
        ),
        (
            compressed("float-quantized", num_bits=8, type="float", strategy="channel"),
            ELEMENTS + 1024 * 4,
        ),
        (
            compressed("float-quantized", num_bits=8, type="float", strategy="tensor"),
            ELEMENTS + 8,
        ),
        (
            compressed(
                "float-quantized",
                num_bits=8,
                type="float",
                strategy="block",
                block_structure=[128, 128],
            ),
            ELEMENTS + 8 * 32 * 4,
        ),
        (
            compressed("nvfp4-pack-quantized", num_bits=4, type="float", group_size=16),
            ELEMENTS // 2 + 1024 * 256 + 8,
        ),
        (
            compressed("mxfp4-pack-quantized", num_bits=4, type="float", group_size=32),
            ELEMENTS // 2 + 1024 * 128,
        ),
    ],
    ids=lambda value: value["format"] if isinstance(value, dict) else str(value),
)
def test_bytes_of_a_compressed_matrix(read: Read, settings: Config, size: int) -> None:
    spec = read({**QWEN3_8B, "quantization_config": settings})
    (weight,) = stored(spec, "self_attn.k_proj")
    assert weight.stored_bytes(PLAIN["bfloat16"]) == 36 * size


# What stays plain


def test_embeddings_norms_biases_routers_and_heads_stay_plain(read: Read) -> None:
    config = {
        **QWEN3_8B,
        "model_type": "qwen2_moe",
        "num_experts": 4,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 64,
        "shared_expert_intermediate_size": 128,
        "quantization_config": {"quant_method": "fp8"},
    }
    plain = formats(read(config))[""]
    assert {"embed_tokens", "lm_head", "norm", "mlp.gate", "mlp.shared_expert_gate"} <= plain
    assert {"self_attn.q_proj.bias", "input_layernorm"} <= plain
    assert not {name for name in plain if ".experts." in name or "shared_expert." in name}


def test_a_draft_module_keeps_its_ends_plain(read: Read) -> None:
    spec = read({**DEEPSEEK_V3, "quantization_config": {"quant_method": "fp8"}})
    mtp = [weight for weight in spec.weights if weight.component == "mtp"]
    plain = {weight.name.removesuffix(".weight") for weight in mtp if weight.format is None}
    assert {"eh_proj", "embed_tokens", "shared_head.head", "mlp.gate"} <= plain
    assert "mlp.experts.up_proj" not in plain


@pytest.mark.parametrize(
    "key", ["modules_to_not_convert", "ignored_layers"], ids=["transformers", "autofp8"]
)
def test_a_module_left_out_in_one_layer_becomes_two_entries(read: Read, key: str) -> None:
    settings = {"quant_method": "fp8", key: ["model.layers.3.self_attn.k_proj", "lm_head"]}
    entries = stored(read({**QWEN3_8B, "quantization_config": settings}), "self_attn.k_proj")
    assert [(e.format.name if e.format else None, len(e.layers)) for e in entries] == [
        ("fp8", 35),
        (None, 1),
    ]
    assert entries[1].layers == (3,)
    assert sum(entry.parameters for entry in entries) == 36 * ELEMENTS


def test_kimi_quantizes_its_experts_only(read: Read) -> None:
    settings = compressed("pack-quantized", num_bits=4, type="int", strategy="group", group_size=32)
    settings["ignore"] = [
        "lm_head",
        "re:.*self_attn.*",
        "re:.*shared_experts.*",
        "re:.*mlp\\.(gate|up|gate_up|down)_proj.*",
    ]
    spec = read({**DEEPSEEK_V3, "model_type": "kimi_k2", "quantization_config": settings})
    assert formats(spec)["w4a16"] == {f"mlp.experts.{n}_proj" for n in ("gate", "up", "down")}


def test_targets_other_than_all_linear_layers(read: Read) -> None:
    settings = compressed("float-quantized", num_bits=8, type="float", strategy="tensor")
    settings["config_groups"]["group_0"]["targets"] = ["re:.*mlp.*"]
    spec = read({**QWEN3_8B, "quantization_config": settings})
    assert formats(spec)["fp8"] == {f"mlp.{name}_proj" for name in ("gate", "up", "down")}


def test_two_groups_have_two_formats(read: Read) -> None:
    settings = compressed("mixed", num_bits=8, type="float", strategy="tensor")
    first = settings["config_groups"]["group_0"]
    first |= {"targets": ["re:.*mlp.*"], "format": "float-quantized"}
    weights = {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 128}
    settings["config_groups"]["group_1"] = {
        "targets": ["re:.*self_attn.*"],
        "format": "pack-quantized",
        "weights": weights,
    }
    found = formats(read({**QWEN3_8B, "quantization_config": settings}))
    assert "mlp.up_proj" in found["fp8"]
    assert "self_attn.q_proj" in found["w4a16"]


def test_gptq_may_name_what_it_quantizes(read: Read) -> None:
    settings = {
        "quant_method": "gptq",
        "bits": 4,
        "modules_in_block_to_quantize": [["self_attn.q_proj"], ["mlp.up_proj"]],
    }
    spec = read({**QWEN3_8B, "quantization_config": settings})
    assert formats(spec)["gptq"] == {"self_attn.q_proj", "mlp.up_proj"}
