"""GGUF file types: bytes by number type, against llama.cpp's own quantization planner."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kvplan.architectures import quantize
from kvplan.architectures.quantization.gguf import as_gguf
from kvplan.architectures.quantization.gguf_mix import GgufTensor, is_quantized, plan_types
from kvplan.architectures.quantization.gguf_rules import BASES, Traits
from kvplan.errors import NotModelledError, UnknownNameError, UsageError
from kvplan.models.formats import PLAIN
from kvplan.models.spec import ModelSpec
from kvplan.models.weights import RankLayout, rank_bytes, stored_bytes

Read = Callable[..., ModelSpec]
Rows = Callable[[str], Iterator[dict[str, Any]]]
DATA = json.loads((Path(__file__).parents[2] / "data" / "gguf_weights.json").read_text("utf-8"))
LLAMA = DATA["models"]["llama3.1-8b"]


def bytes_by_type(spec: ModelSpec) -> dict[str, int]:
    sizes: Counter[str] = Counter()
    for weight in spec.weights:
        assert weight.format is not None
        sizes[weight.format.name] += weight.stored_bytes(PLAIN["float32"])
    return dict(sizes)


@pytest.mark.parametrize(("model", "file_type", "expected"), DATA["bytes"])
def test_bytes_by_type(read: Read, model: str, file_type: str, expected: dict[str, int]) -> None:
    spec = quantize(read(DATA["models"][model]), f"gguf:{file_type}")
    assert bytes_by_type(spec) == expected
    assert spec.quantization == f"gguf:{file_type}"


def test_every_case_of_the_planner(read: Read, oracle: Rows) -> None:
    seen = 0
    for case in oracle("llamacpp_weight_cases.jsonl.gz"):
        spec = as_gguf(read(DATA["models"][case["model"]]), case["ftype"])
        assert bytes_by_type(spec) == case["by_type"]
        assert sum(stored_bytes(spec.weights, PLAIN["float32"]).values()) == case["data_bytes"]
        seen += 1
    assert seen == 83


@pytest.mark.parametrize(("model", "file_type", "expected"), DATA["counts"])
def test_tensors_of_another_type(
    read: Read, model: str, file_type: str, expected: dict[str, int]
) -> None:
    """How many tensors have which type, where it is not the file type's own."""
    spec = as_gguf(read(DATA["models"][model]), file_type, imatrix=False)
    counts: Counter[str] = Counter()
    for weight in spec.weights:
        if len(weight.shape) < 2 or weight.component == "router" or weight.format is None:
            continue
        tensors = 2 if weight.name == "mlp.experts.gate_up_proj.weight" else 1
        counts[weight.format.name] += tensors * (len(weight.layers) or 1)
    counts.pop(BASES[file_type], None)
    assert dict(counts) == expected


def test_an_importance_matrix_spends_fewer_bits(read: Read) -> None:
    """Rules of src/llama-quant.cpp: with one, the first down projections need no better type."""
    spec = read(LLAMA)
    without, with_one = (as_gguf(spec, "IQ4_XS", imatrix=imatrix) for imatrix in (False, True))
    assert "q5_K" in {weight.format.name for weight in with_one.weights if weight.format}
    assert bytes_by_type(with_one)["q5_K"] < bytes_by_type(without)["q5_K"]
    assert bytes_by_type(as_gguf(spec, "Q4_0", imatrix=True))["q4_1"] > 0
    assert bytes_by_type(as_gguf(spec, "IQ3_XXS")) == bytes_by_type(
        as_gguf(spec, "IQ3_XXS", imatrix=True)
    )


@pytest.mark.parametrize("file_type", BASES)
def test_every_file_type_is_planned_for_falcon_and_eight_experts(
    read: Read, file_type: str
) -> None:
    """Both have rules of their own."""
    falcon = {"model_type": "falcon", "hidden_size": 4544, "num_attention_heads": 71}
    falcon |= {"num_hidden_layers": 32, "vocab_size": 65024}
    eight = {**LLAMA, "model_type": "mixtral", "num_local_experts": 8, "num_experts_per_tok": 2}
    for config in (falcon, eight):
        spec = as_gguf(read(config), file_type)
        assert spec.parameters_total == read(config).parameters_total
    kinds = {weight.name: weight.format for weight in spec.weights}
    key = kinds["self_attn.k_proj.weight"]
    assert key is not None
    if file_type not in ("F32", "F16", "BF16", "MXFP4_MOE") and "IQ1" not in file_type:
        assert key.name == ("q4_K" if file_type.startswith("IQ2") else "q8_0")


def test_rows_that_are_no_whole_blocks_fall_back() -> None:
    model = Traits("llama", layers=32, shared_by=4)
    rows = {"attn_q": 256, "attn_k": 96, "attn_output": 100}
    tensors = [GgufTensor(f"blk.0.{name}.weight", (64, row)) for name, row in rows.items()]
    types = plan_types(tensors, model, "Q6_K")
    assert list(types.values()) == ["q8_0", "f16", "q6_K"]
    assert set(plan_types(tensors, model, "IQ2_M").values()) == {"iq2_s", "f16", "iq4_nl"}


@pytest.mark.parametrize(
    "name",
    [
        "output_norm.weight",
        "blk.0.ffn_gate_inp.weight",
        "blk.0.attn_q.bias",
        "position_embd.weight",
        "blk.0.ssm_conv1d.weight",
    ],
)
def test_some_matrices_are_left_alone(name: str) -> None:
    assert not is_quantized(GgufTensor(name, (64, 256)))
    assert not is_quantized(GgufTensor("blk.0.attn_q.weight", (1, 256)))
    assert is_quantized(GgufTensor("blk.0.attn_q.weight", (2, 256)))


def test_latent_attention_is_cut_in_two(read: Read) -> None:
    spec = as_gguf(read(DATA["models"]["deepseek-v3.1"]), "Q4_K_M")
    shapes = {weight.name: weight.shape for weight in spec.weights}
    assert shapes["attn_k_b.weight"] == (128 * 512, 128)
    assert shapes["attn_v_b.weight"] == (128 * 128, 512)
    assert not any(weight.component == "mtp" for weight in spec.weights)
    assert spec.parameters_total == read(DATA["models"]["deepseek-v3.1"]).parameters_total


def test_a_module_for_further_tokens_is_one_more_layer(read: Read) -> None:
    """conversion/glm.py counts it, so the rules by position shift."""
    config = {**DATA["models"]["glm-4.6v"], "num_nextn_predict_layers": 1}
    spec = as_gguf(read(config), "Q4_K_M")
    assert any(weight.component == "mtp" for weight in spec.weights)


def test_towers_stay_in_their_own_file(read: Read) -> None:
    config = {
        "model_type": "gemma3",
        "text_config": {**DATA["models"]["gemma-3-4b-it"], "num_hidden_layers": 2},
        "vision_config": {"hidden_size": 1152, "image_size": 896, "patch_size": 14},
    }
    spec = as_gguf(read(config), "Q4_0")
    assert {weight.format for weight in spec.weights if weight.place == "tower"} == {None}


@pytest.mark.parametrize(
    ("seeing", "reading"),
    [
        ("Qwen--Qwen2-VL-7B-Instruct", "Qwen--Qwen2-7B-Instruct"),
        ("Qwen--Qwen2.5-VL-7B-Instruct", "Qwen--Qwen2.5-7B"),
        ("Qwen--Qwen3-VL-8B-Instruct", "Qwen--Qwen3-8B"),
        ("Qwen--Qwen3-VL-30B-A3B-Instruct", "Qwen--Qwen3-30B-A3B"),
    ],
)
def test_a_model_that_sees_has_the_types_of_the_one_that_only_reads(
    read: Read, shared: Path, seeing: str, reading: str
) -> None:
    plain, other = (
        read(json.loads((shared / "configs" / name / "config.json").read_text("utf-8")))
        for name in (seeing, reading)
    )
    bf16 = PLAIN["bfloat16"]
    sizes = stored_bytes(quantize(plain, "gguf:Q4_K_M").weights, bf16)
    assert sizes.pop("vision") == stored_bytes(plain.weights, bf16)["vision"]
    assert sizes == stored_bytes(quantize(other, "gguf:Q4_K_M").weights, bf16)


def test_ranks_hold_whole_blocks(read: Read) -> None:
    spec = as_gguf(read(LLAMA), "Q4_K_M")
    whole, half = (
        rank_bytes(spec.weights, PLAIN["float16"], RankLayout(tp=tp, layers=(0, 32)), tied=False)
        for tp in (1, 2)
    )
    assert 2 * half["mlp"] == whole["mlp"]


@pytest.mark.parametrize("name", ["gguf:q4_k_m", "GGUF:Q4_K_M", "gguf:Q4_K"])
def test_names_in_any_case_and_the_short_ones(read: Read, name: str) -> None:
    assert quantize(read(LLAMA), name).quantization == "gguf:Q4_K_M"


def test_names_that_are_none(read: Read) -> None:
    with pytest.raises(UnknownNameError) as caught:
        quantize(read(LLAMA), "gguf:Q4_KM")
    assert "Q4_K_M" in str(caught.value.hint)
    with pytest.raises(UnknownNameError) as caught:
        quantize(read(LLAMA), "gguf:")
    assert caught.value.hint


def test_families_that_are_not_read_are_refused(read: Read) -> None:
    opt = {"model_type": "opt", "hidden_size": 768, "num_attention_heads": 12, "ffn_dim": 3072}
    opt |= {"num_hidden_layers": 2, "vocab_size": 50272, "max_position_embeddings": 2048}
    with pytest.raises(NotModelledError, match="'opt'"):
        quantize(read(opt), "gguf:Q4_K_M")


def test_a_quantized_checkpoint_is_not_converted(read: Read) -> None:
    spec = read({**LLAMA, "quantization_config": {"quant_method": "fp8"}})
    with pytest.raises(UsageError):
        quantize(spec, "gguf:Q8_0")


@pytest.mark.parametrize("name", ["Q4_K_M", "q4_k_m", "GGUF:q4_k_m"])
def test_a_file_type_by_its_bare_name(read: Read, name: str) -> None:
    assert quantize(read(LLAMA), name) == quantize(read(LLAMA), "gguf:Q4_K_M")


def test_plain_formats_keep_their_names(read: Read) -> None:
    assert quantize(read(LLAMA), "bf16").quantization is None
