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
        found.setdefault(name, set()).add(weight.name.partition(".weight")[0])
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


def test_bitsandbytes_equals_the_files_of_llama(read: Read) -> None:
    """9,086,705,888 and 7,201,770,923 bytes: indexes of published 8- and 4-bit builds.

    The second holds 172 bytes a matrix that describe its shape in JSON, which is not counted.
    """
    llama_8b = LLAMA_70B | {"hidden_size": 4096, "intermediate_size": 14336}
    llama_8b |= {"num_hidden_layers": 32, "num_attention_heads": 32}
    eight = {"quant_method": "bitsandbytes", "load_in_8bit": True}
    assert total(read({**llama_8b, "quantization_config": eight})) == 9_086_705_888
    llama_13b = {"model_type": "llama", "hidden_size": 5120, "intermediate_size": 13824}
    llama_13b |= {"num_hidden_layers": 40, "num_attention_heads": 40, "vocab_size": 32000}
    four = {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4"}
    four |= {"bnb_4bit_use_double_quant": True}
    spec = read({**llama_13b, "torch_dtype": "float16", "quantization_config": four})
    assert math.isclose(total(spec), 7_201_770_923, rel_tol=1e-5)


def test_mlx_equals_the_files_of_qwen3_14b(read: Read) -> None:
    """8,307,783,680 bytes: index of mlx-community/Qwen3-14B-4bit."""
    sizes = {"hidden_size": 5120, "intermediate_size": 17408, "num_hidden_layers": 40}
    config = QWEN3_8B | sizes | {"num_attention_heads": 40}
    spec = read({**config, "quantization": {"group_size": 64, "bits": 4}})
    assert total(spec) == 8_307_783_680
    assert spec.quantization == "mlx"


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
        (
            {"quant_method": "bitsandbytes", "load_in_8bit": True},
            ELEMENTS + 1024 * 4 + 1,
        ),
        (
            {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4"},
            ELEMENTS // 2 + ELEMENTS // 64 * 4 + 64,
        ),
        (
            {
                "quant_method": "bitsandbytes",
                "_load_in_4bit": True,
                "bnb_4bit_use_double_quant": True,
            },
            ELEMENTS // 2 + ELEMENTS // 64 + ELEMENTS // 16384 * 4 + 64 + 1024,
        ),
        (
            {
                "quant_method": "hqq",
                "quant_config": {"weight_quant_params": {"nbits": 4, "group_size": 64}},
            },
            ELEMENTS // 2 + ELEMENTS // 64 * 4,
        ),
        (
            {
                "quant_method": "hqq",
                "quant_config": {
                    "self_attn.k_proj": {
                        "weight_quant_params": {"nbits": 8, "group_size": None},
                        "zero_quant_params": {"nbits": 8},
                    }
                },
            },
            ELEMENTS + 1024 * 3,
        ),
        ({"group_size": 32, "bits": 8}, ELEMENTS + ELEMENTS // 32 * 4),
        ({"group_size": 32, "bits": 4, "mode": "mxfp4"}, ELEMENTS // 2 + ELEMENTS // 32),
        (
            {"quant_method": "auto-round", "bits": 4, "group_size": 128},
            ELEMENTS // 2 + 32 * 1024 * 2 + 32 * 1024 // 2,
        ),
        (
            {"quant_method": "intel/auto-round", "bits": 8, "group_size": -1}
            | {"packing_format": "auto_round:auto_awq"},
            ELEMENTS + 1024 * 2 + 1024,
        ),
        (
            {"quant_method": "auto_round", "bits": 8, "data_type": "fp", "group_size": [128, 128]},
            ELEMENTS + 8 * 32 * 4,
        ),
        (
            {"quant_method": "auto-round", "bits": 4, "data_type": "mx_fp4e2m1", "group_size": 32},
            ELEMENTS // 2 + ELEMENTS // 32,
        ),
        (
            {"quant_method": "auto-round", "bits": 8, "data_type": "mx_fp", "group_size": 32},
            ELEMENTS + ELEMENTS // 32,
        ),
        (
            {
                "quant_method": "torchao",
                "quant_type": {
                    "default": {"_type": "Int4WeightOnlyConfig", "_data": {"group_size": 32}}
                },
            },
            ELEMENTS // 2 + ELEMENTS // 32 * 4,
        ),
        (
            {
                "quant_method": "torchao",
                "quant_type": {"default": {"_type": "Int8WeightOnlyConfig", "_data": {}}},
            },
            ELEMENTS + 1024 * 2,
        ),
        (
            {
                "quant_method": "torchao",
                "quant_type": {"default": {"_type": "Float8WeightOnlyConfig"}},
            },
            ELEMENTS + 1024 * 4,
        ),
        (
            {
                "quant_method": "torchao",
                "quant_type": {
                    "default": {
                        "_type": "Float8DynamicActivationFloat8WeightConfig",
                        "_data": {"granularity": [{"_type": "PerTensor"}]},
                    }
                },
            },
            ELEMENTS + 4,
        ),
        ({"quant_method": "modelopt", "quant_algo": "FP8"}, ELEMENTS + 8),
        ({"quant_method": "modelopt", "quant_algo": "FP8_PB_WO"}, ELEMENTS + 8 * 32 * 4),
        ({"quant_method": "modelopt", "quant_algo": "MXFP8"}, ELEMENTS + ELEMENTS // 32),
        (
            {"quant_method": "modelopt", "quant_algo": "W4A16_NVFP4"},
            ELEMENTS // 2 + 1024 * 256 + 4,
        ),
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
            compressed(
                "float-quantized", num_bits=8, type="float", strategy="group", group_size=32
            ),
            ELEMENTS + ELEMENTS // 32,
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


def test_names_go_before_the_class_of_all_linear_layers(read: Read) -> None:
    settings = compressed("float-quantized", num_bits=8, type="float", strategy="tensor")
    settings["config_groups"]["named"] = {
        "targets": ["re:.*k_proj", "lm_head"],
        "format": "int-quantized",
        "weights": {"num_bits": 8, "type": "int", "strategy": "channel"},
    }
    settings["ignore"] = ["model.layers.0.self_attn.k_proj"]
    spec = read({**QWEN3_8B, "quantization_config": settings})
    assert formats(spec)["int8"] == {"self_attn.k_proj", "lm_head"}
    assert "mlp.up_proj" in formats(spec)["fp8"]
    assert stored(spec, "self_attn.k_proj")[0].format is None


def test_gptq_rules_by_module(read: Read) -> None:
    """The first pattern that matches counts; ``-:`` leaves a module plain."""
    dynamic = {
        r"-:.*\.layers\.3\..*": {},
        r"+:.*down_proj.*": {"bits": 8, "group_size": 32},
        r".*layers\.3\.mlp.*": {"bits": 2},
    }
    settings = {"quant_method": "gptq", "bits": 4, "group_size": 128, "dynamic": dynamic}
    spec = read({**QWEN3_8B, "quantization_config": settings | {"lm_head": True}})
    down = {
        layer: entry.format for entry in stored(spec, "mlp.down_proj") for layer in entry.layers
    }
    up = {layer: entry.format for entry in stored(spec, "mlp.up_proj") for layer in entry.layers}
    assert down[3] is up[3] is None
    assert down[4] is not None
    assert up[4] is not None
    assert (down[4].bits, down[4].block_columns) == (8, 32)
    assert (up[4].bits, up[4].block_columns) == (4, 128)
    assert stored(spec, "lm_head")[0].format == up[4]


def test_auto_round_rules_by_module(read: Read) -> None:
    extra = {
        "model.layers.1.mlp.up_proj": {"bits": 16},
        r".*\.layers\.2\.mlp.*": {"bits": 8, "group_size": 32},
        "lm_head": {"bits": 4},
    }
    settings = {"quant_method": "auto-round", "bits": 4, "group_size": 128, "extra_config": extra}
    spec = read({**QWEN3_8B, "quantization_config": settings})
    up = {layer: entry.format for entry in stored(spec, "mlp.up_proj") for layer in entry.layers}
    assert up[1] is None
    assert up[2] is not None
    assert up[0] is not None
    assert (up[0].bits, up[2].bits, up[2].block_columns) == (4, 8, 32)
    assert stored(spec, "lm_head")[0].format == up[0]


@pytest.mark.parametrize("blocks", ["model.layers", ["model.layers"], "model.layers,other"])
def test_auto_round_names_its_blocks(read: Read, blocks: object) -> None:
    settings = {"quant_method": "auto-round", "bits": 4, "to_quant_block_names": blocks}
    spec = read({**QWEN3_8B, "quantization_config": settings})
    assert "mlp.up_proj" in formats(spec)["auto-round"]
    elsewhere = settings | {"to_quant_block_names": "model.other"}
    assert "auto-round" not in formats(read({**QWEN3_8B, "quantization_config": elsewhere}))


def test_modelopt_mixes_by_layer(read: Read) -> None:
    layers = {
        "model.layers.0.self_attn.q_proj": {"quant_algo": "FP8"},
        "model.layers.0.mlp.up_proj": {"quant_algo": "W4A16_NVFP4", "group_size": 16},
        "model.layers.1.mlp.up_proj": {"quant_algo": "nvfp4"},
        "model.layers.2.mlp.up_proj": {"quant_algo": "FP8"},
        "lm_head": {"quant_algo": "W4A16_NVFP4"},
    }
    settings = {"quant_algo": "MIXED_PRECISION", "quantized_layers": layers}
    settings |= {"exclude_modules": ["model.layers.2*"], "kv_cache_quant_algo": "FP8"}
    spec = read(QWEN3_8B, quantization={"quantization": settings})
    assert formats(spec)["fp8"] == {"self_attn.q_proj"}
    assert formats(spec)["nvfp4"] == {"mlp.up_proj", "lm_head"}
    up = {layer: entry.format for entry in stored(spec, "mlp.up_proj") for layer in entry.layers}
    assert up[0] is not None
    assert up[1] is not None
    assert (up[0].tensor_bytes, up[1].tensor_bytes, up[2], up[3]) == (4, 8, None, None)
    assert (spec.quantization, spec.kv_scheme) == ("modelopt mixed_precision", "fp8")


def test_mlx_exceptions_by_module(read: Read) -> None:
    settings = {
        "group_size": 64,
        "bits": 4,
        "model.embed_tokens": {"bits": 8, "group_size": 32},
        "model.layers.0.mlp.up_proj": False,
        "lm_head": {"bits": 6},
    }
    spec = read({**QWEN3_8B, "quantization": settings})
    (embedding,), (head,) = stored(spec, "embed_tokens"), stored(spec, "lm_head")
    assert embedding.format is not None
    assert head.format is not None
    assert (embedding.format.bits, embedding.format.block_columns, head.format.bits) == (8, 32, 6)
    up = {layer: entry.format for entry in stored(spec, "mlp.up_proj") for layer in entry.layers}
    assert up[0] is None
    assert up[1] is not None


def test_bitsandbytes_and_others_name_what_they_leave(read: Read) -> None:
    named = ["lm_head", "model.layers.0.self_attn"]
    four = {"quant_method": "bitsandbytes", "load_in_4bit": True, "llm_int8_skip_modules": named}
    hqq = {"quant_method": "hqq", "quant_config": {"weight_quant_params": {"nbits": 4}}}
    ao = {"quant_method": "torchao", "quant_type": {"default": {"_type": "Int4WeightOnlyConfig"}}}
    for settings in (four, hqq | {"skip_modules": named}, ao | {"modules_to_not_convert": named}):
        plain, packed = stored(
            read({**QWEN3_8B, "quantization_config": settings}), "self_attn.q_proj"
        )
        assert plain.format is None
        assert plain.layers == (0,)
        assert packed.format is not None


def test_torchao_may_take_embeddings_too(read: Read) -> None:
    quant_type = {"default": {"_type": "Int8WeightOnlyConfig"}}
    settings = {"quant_method": "torchao", "quant_type": quant_type}
    settings |= {"include_input_output_embeddings": True}
    assert {"embed_tokens", "lm_head"} <= formats(
        read({**QWEN3_8B, "quantization_config": settings})
    )["int8"]


def test_recurrent_projections_are_linear_layers(read: Read) -> None:
    """Convolutions, decays and step sizes are not."""
    config = {
        "model_type": "mamba2",
        "hidden_size": 256,
        "num_heads": 8,
        "head_dim": 64,
        "num_hidden_layers": 2,
        "vocab_size": 1000,
        "quantization_config": {"quant_method": "fp8"},
    }
    assert formats(read(config))["fp8"] == {"mixer.in_proj", "mixer.out_proj"}
