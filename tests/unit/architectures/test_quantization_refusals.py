"""Cache schemes of quantized checkpoints, where schemes are stated, and what is refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from kvplan.errors import InputError, NotModelledError
from kvplan.models.facts import TensorHeader
from kvplan.models.spec import ModelSpec

Read = Callable[..., ModelSpec]
Config = dict[str, Any]

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


def compressed(stored_as: str, **weights: Any) -> Config:
    return {
        "quant_method": "compressed-tensors",
        "format": stored_as,
        "ignore": ["lm_head"],
        "config_groups": {"group_0": {"targets": ["Linear"], "weights": weights}},
    }


# Cache schemes


@pytest.mark.parametrize(
    ("stated", "scheme"),
    [
        ({"kv_cache_quant_algo": "FP8"}, "fp8"),
        ({"kv_cache_quant_algo": "NVFP4"}, "nvfp4"),
        ({"kv_cache_quant_algo": "INT8"}, None),
        ({"kv_cache_quant_algo": None}, None),
        ({}, None),
        ({"kv_cache_scheme": "FP8"}, "fp8"),
        ({"kv_cache_scheme": {"dynamic": False, "num_bits": 8, "type": "float"}}, "fp8"),
        ({"kv_cache_scheme": {"dynamic": True, "num_bits": 8, "type": "float"}}, None),
        ({"kv_cache_scheme": {"num_bits": 4, "type": "float"}}, "nvfp4"),
        ({"kv_cache_scheme": {"num_bits": 8, "type": "int"}}, None),
    ],
)
def test_modelopt_cache_schemes(read: Read, stated: Config, scheme: str | None) -> None:
    settings = {"quant_algo": "FP8", "producer": {"name": "modelopt"}, **stated}
    assert read({**QWEN3_8B, "quantization_config": settings}).kv_scheme == scheme


def test_fp8_weights_do_not_mean_an_fp8_cache(read: Read) -> None:
    assert read({**QWEN3_8B, "quantization_config": {"quant_method": "fp8"}}).kv_scheme is None


@pytest.mark.parametrize(
    ("scheme", "kv"), [(None, None), ({}, "fp8"), ({"num_bits": 8, "type": "float"}, "fp8")]
)
def test_compressed_tensors_cache_schemes(
    read: Read, scheme: Config | None, kv: str | None
) -> None:
    settings = compressed("float-quantized", num_bits=8, type="float", strategy="tensor")
    settings["kv_cache_scheme"] = scheme
    assert read({**QWEN3_8B, "quantization_config": settings}).kv_scheme == kv


# Where it is stated, and what is refused


def test_the_file_beside_the_configuration_goes_first(read: Read) -> None:
    inside = {"quant_method": "modelopt", "quant_algo": "FP8"}
    beside = {"quantization": {"quant_algo": "NVFP4"}}
    spec = read({**QWEN3_8B, "quantization_config": inside}, quantization=beside)
    assert spec.quantization == "modelopt nvfp4"


def test_older_compressed_checkpoints_have_another_key(read: Read) -> None:
    settings = compressed("int-quantized", num_bits=8, type="int", strategy="channel")
    settings["quant_method"] = "compressed_tensors"
    spec = read({**QWEN3_8B, "compression_config": settings})
    assert spec.quantization == "compressed-tensors"


@pytest.mark.parametrize(
    "settings",
    [
        {"quant_method": "exl2"},
        {"quant_method": "exl3"},
        {"quant_method": "quark"},
        {"quant_method": "quanto", "weights": "int8"},
        {"quant_method": "nothing known"},
        {},
        {"quant_method": "hqq", "quant_config": {"weight_quant_params": {"nbits": 3}}},
        {
            "quant_method": "hqq",
            "quant_config": {"weight_quant_params": {"nbits": 4}, "scale_quant_params": {"a": 1}},
        },
        {"quant_method": "torchao"},
        {"quant_method": "torchao", "quant_type": {"default": {"_type": "UIntXWeightOnlyConfig"}}},
        {
            "quant_method": "torchao",
            "quant_type": {
                "default": {"_type": "Int8WeightOnlyConfig", "_data": {"group_size": 8}}
            },
        },
        {"quant_method": "auto-round", "bits": 5},
        {"quant_method": "auto-round", "bits": 4, "packing_format": "auto_round:other"},
        {"quant_method": "auto-round", "bits": 4, "data_type": "nv_fp"},
        {"group_size": 64, "bits": 4, "mode": "unheard of"},
        {"quant_method": "modelopt", "quant_algo": "INT4_AWQ"},
        {"quant_method": "gptq", "bits": 4, "dynamic": {"-:(a+)+$": {}}},
        compressed("int-quantized", num_bits=8, type="int")
        | {"sparsity_config": {"format": "sparse-24-bitmask"}},
        compressed("marlin-24", num_bits=4, type="int", strategy="group"),
        {"quant_method": "fp8", "ignored_layers": ["a" * 300]},
        compressed("float-quantized", num_bits=8, type="float") | {"ignore": ["re:(a+)+$"]},
    ],
    ids=str,
)
def test_schemes_that_are_not_modelled(read: Read, settings: Config) -> None:
    with pytest.raises(NotModelledError) as caught:
        read({**QWEN3_8B, "quantization_config": settings})
    assert caught.value.hint


@pytest.mark.parametrize(
    "settings",
    [
        {"quant_method": 8},
        {"quant_method": "fp8", "weight_block_size": [128]},
        {"quant_method": "fp8", "weight_block_size": "128x128"},
        {"quant_method": "fp8", "modules_to_not_convert": "lm_head"},
        {"quant_method": "awq", "group_size": 0},
        {"quant_method": "awq", "bits": "4"},
        {"quant_method": "gptq"},
        {"quant_method": "gptq", "bits": 5},
        {"quant_method": "gptq", "bits": 4, "group_size": 0},
        {"quant_method": "gptq", "bits": 4, "dynamic": {"+:.*": {"bits": 5}}},
        {"quant_method": "gptq", "bits": 4, "dynamic": {"+:.*": {"group_size": 0}}},
        {"quant_method": "gptq", "bits": 4, "dynamic": ["a"]},
        {"quant_method": "bitsandbytes"},
        {"quant_method": "bitsandbytes", "load_in_4bit": "yes"},
        {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf5"},
        {"quant_method": "hqq"},
        {"quant_method": "hqq", "quant_config": {"self_attn.q_proj": {}}},
        {"quant_method": "auto-round"},
        {"quant_method": "auto-round", "bits": 4, "group_size": 0},
        {"quant_method": "auto-round", "bits": 8, "data_type": "fp", "group_size": [128]},
        {"group_size": 64, "bits": 99},
        {"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION"},
        {"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION", "quantized_layers": [1]},
        {"quant_method": "compressed-tensors"},
        compressed("pack-quantized", num_bits=4, type="int", group_size=0),
        compressed("float-quantized", num_bits=8, type="float", strategy="block")
        | {"config_groups": {"a": {"weights": {"block_structure": [1, 2, 3]}}}},
        "fp8",
    ],
    ids=str,
)
def test_settings_that_make_no_sense(read: Read, settings: object) -> None:
    with pytest.raises((InputError, NotModelledError)):
        read({**QWEN3_8B, "quantization_config": settings})


def test_headers_make_up_for_a_scheme_that_is_not_modelled(read: Read) -> None:
    tensors: list[TensorHeader] = []
    for weight in read(QWEN3_8B).weights:
        packed = weight.name.endswith("_proj.weight")
        name = weight.name.replace(".weight", ".q_weight") if packed else weight.name
        size = math.prod(weight.shape) // 2 if packed else 2 * math.prod(weight.shape)
        shape, dtype = ((size // 4, 1), "I32") if packed else (weight.shape, "BF16")
        names = [f"model.layers.{layer}.{name}" for layer in weight.layers] or [name]
        tensors += [TensorHeader(name=n, dtype=dtype, shape=shape, size=size) for n in names]
    config = {**QWEN3_8B, "quantization_config": {"quant_method": "exl2"}}
    spec = read(config, tensors=tuple(tensors))
    assert spec.quantization == "exl2"
    assert sum(weight.stored_bytes(weight.format) for weight in spec.weights if weight.format) == (
        sum(tensor.size for tensor in tensors)
    )
    with pytest.raises(NotModelledError, match="exl2"):
        read(config, tensors=tuple(tensors[:9]))
