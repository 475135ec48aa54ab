"""The type a checkpoint computes in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kvplan.errors import InputError
from kvplan.models.facts import TensorHeader
from kvplan.models.spec import ModelSpec

Read = Callable[..., ModelSpec]
Config = dict[str, Any]


@pytest.fixture
def untyped(llama: Config) -> Config:
    del llama["torch_dtype"]
    return llama


@pytest.mark.parametrize(
    ("stated", "dtype"),
    [
        ({"torch_dtype": "float16"}, "float16"),
        ({"dtype": "bfloat16"}, "bfloat16"),
        ({"dtype": "bfloat16", "torch_dtype": "float32"}, "bfloat16"),
        ({"torch_dtype": "torch.half"}, "float16"),
        ({"dtype": None, "torch_dtype": "float32"}, "float32"),
    ],
)
def test_both_spellings(read: Read, untyped: Config, stated: Config, dtype: str) -> None:
    assert read({**untyped, **stated}).dtype == dtype


def source_of_dtype(spec: ModelSpec) -> str:
    return next(default.source for default in spec.defaults if default.field == "dtype")


def test_neither_is_float32_and_said_so(read: Read, untyped: Config) -> None:
    spec = read(untyped)
    assert spec.dtype == "float32"
    assert "transformers" in source_of_dtype(spec)


def test_the_size_of_the_files_tells_half_precision(read: Read, untyped: Config) -> None:
    """gpt-oss and BLOOM state no type; their files hold two bytes an element."""
    parameters = read(untyped).parameters_total
    half = read(untyped, checkpoint_bytes=2 * parameters)
    assert half.dtype == "bfloat16"
    assert "size of the files" in source_of_dtype(half)
    assert read(untyped, checkpoint_bytes=4 * parameters).dtype == "float32"


def test_the_tensors_tell(read: Read, untyped: Config) -> None:
    tensor = TensorHeader(name="lm_head.weight", dtype="F16", shape=(2, 2), size=8)
    assert read(untyped, tensors=(tensor,)).dtype == "float16"


def test_mxfp4_computes_in_bfloat16(read: Read) -> None:
    config = {
        "model_type": "gpt_oss",
        "hidden_size": 64,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 8,
        "vocab_size": 100,
        "quantization_config": {"quant_method": "mxfp4"},
    }
    assert read(config).dtype == "bfloat16"


def test_the_text_part_is_asked_too(read: Read) -> None:
    text = {"model_type": "gemma3_text", "torch_dtype": "float16", "sliding_window": 64}
    assert (
        read({"model_type": "gemma3", "text_config": text, "vision_config": {}}).dtype == "float16"
    )


@pytest.mark.parametrize("value", ["float8_e4m3fn", "int8", "", 16, ["bfloat16"]])
def test_other_types_are_named(read: Read, untyped: Config, value: object) -> None:
    with pytest.raises(InputError, match="torch_dtype"):
        read({**untyped, "torch_dtype": value})
