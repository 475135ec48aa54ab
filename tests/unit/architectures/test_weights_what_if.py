"""The same model with its weights in another format."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kvplan.architectures import WEIGHT_FORMATS, quantize
from kvplan.errors import UnknownNameError, UsageError
from kvplan.models.facts import TensorHeader
from kvplan.models.formats import PLAIN
from kvplan.models.spec import ModelSpec
from kvplan.models.weights import stored_bytes

Read = Callable[..., ModelSpec]
Config = dict[str, Any]

# Llama 3.1 8B: linear layers of the decoder, and what stays plain.
LINEAR = 32 * (4096 * (4096 + 2 * 1024 + 4096) + 3 * 4096 * 14336)
ROWS = 32 * (4096 + 2 * 1024 + 4096 + 2 * 14336 + 4096)
COLUMNS = 32 * (6 * 4096 + 14336)
PLAIN_ELEMENTS = 2 * 128256 * 4096 + 65 * 4096


def total(spec: ModelSpec) -> int:
    return sum(stored_bytes(spec.weights, PLAIN[spec.dtype]).values())


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("auto", 2 * LINEAR + 2 * PLAIN_ELEMENTS),
        ("bf16", 2 * LINEAR + 2 * PLAIN_ELEMENTS),
        ("FP16", 2 * LINEAR + 2 * PLAIN_ELEMENTS),
        ("fp32", 4 * LINEAR + 4 * PLAIN_ELEMENTS),
        ("fp8", LINEAR + 4 * ROWS + 2 * PLAIN_ELEMENTS),
        ("int8", LINEAR + 4 * ROWS + 2 * PLAIN_ELEMENTS),
        ("w8a8", LINEAR + 4 * ROWS + 2 * PLAIN_ELEMENTS),
        ("fp8-block", LINEAR + LINEAR // 128**2 * 4 + 2 * PLAIN_ELEMENTS),
        ("w4a16", LINEAR // 2 + LINEAR // 128 * 2 + 224 * 16 + 2 * PLAIN_ELEMENTS),
        ("mxfp4", LINEAR // 2 + LINEAR // 32 + 2 * PLAIN_ELEMENTS),
        ("nvfp4", LINEAR // 2 + LINEAR // 16 + 224 * 8 + 2 * PLAIN_ELEMENTS),
        ("bnb-8bit", LINEAR + 4 * ROWS + 224 + 2 * PLAIN_ELEMENTS),
        (
            "bnb-4bit",
            LINEAR // 2 + LINEAR // 64 + LINEAR // 16384 * 4 + 224 * 1088 + 2 * PLAIN_ELEMENTS,
        ),
        # A scale of two bytes and half a byte of zero point for 128 elements.
        ("awq", LINEAR // 2 + LINEAR // 128 * 5 // 2 + 2 * PLAIN_ELEMENTS),
        ("gptq", LINEAR // 2 + LINEAR // 128 * 5 // 2 + 4 * COLUMNS + 2 * PLAIN_ELEMENTS),
    ],
)
def test_bytes(read: Read, llama: Config, name: str, size: int) -> None:
    spec = read(llama)
    changed = quantize(spec, name)
    assert total(changed) == size
    assert changed.parameters_total == spec.parameters_total
    assert changed.kv_scheme is None


def test_every_offered_name_works(read: Read, llama: Config) -> None:
    for name in WEIGHT_FORMATS:
        quantize(read(llama), name)


def test_an_unknown_name_gets_the_nearest(read: Read, llama: Config) -> None:
    with pytest.raises(UnknownNameError) as caught:
        quantize(read(llama), "fp-8")
    assert "fp8" in str(caught.value.hint)
    with pytest.raises(UnknownNameError) as caught:
        quantize(read(llama), "?????")
    assert "Known are auto, fp8" in str(caught.value.hint)


def test_the_nearest_may_be_a_file_type(read: Read, llama: Config) -> None:
    with pytest.raises(UnknownNameError) as caught:
        quantize(read(llama), "Q4KM")
    assert "gguf:Q4_K_M" in str(caught.value.hint)


def test_mxfp4_goes_for_the_experts_where_there_are_some(read: Read, llama: Config) -> None:
    config = {**llama, "model_type": "mixtral", "architectures": ["MixtralForCausalLM"]}
    config |= {"num_local_experts": 8, "num_experts_per_tok": 2}
    spec = quantize(read(config), "mxfp4")
    for weight in spec.weights:
        assert (weight.format is not None) == (weight.component == "experts")


def test_a_quantized_checkpoint_is_not_quantized_again(read: Read, llama: Config) -> None:
    spec = read({**llama, "quantization_config": {"quant_method": "fp8"}})
    with pytest.raises(UsageError, match=r"quantized already \(fp8\)"):
        quantize(spec, "awq")
    assert quantize(spec, "auto") is spec


def test_weights_from_headers_can_be_taken_otherwise(read_some: Read, llama: Config) -> None:
    tensor = TensorHeader(
        name="model.layers.0.mlp.down_proj.weight",
        dtype="BF16",
        shape=(4096, 14336),
        size=2 * 4096 * 14336,
    )
    spec = quantize(read_some(llama, tensors=(tensor,)), "fp8")
    assert total(spec) == 4096 * 14336 + 4 * 4096
