"""Bytes of number formats, against the layouts of the checkpoints and caches that use them."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from kvplan.models.formats import (
    DTYPE_BYTES,
    FP8_KV,
    PLAIN,
    Dtype,
    KvFormat,
    NumberFormat,
    ceil_div,
    plain_kv,
    round_up,
)

# ---------------------------------------------------------------- whole-number helpers


@pytest.mark.parametrize(
    ("dividend", "divisor", "quotient"),
    [(0, 3, 0), (1, 3, 1), (3, 3, 1), (4, 3, 2), (2**60 + 1, 2, 2**59 + 1), (7, 1, 7)],
)
def test_ceil_div(dividend: int, divisor: int, quotient: int) -> None:
    assert ceil_div(dividend, divisor) == quotient


@given(st.integers(0, 2**80), st.integers(1, 2**40))
def test_ceil_div_is_the_least_that_suffices(dividend: int, divisor: int) -> None:
    quotient = ceil_div(dividend, divisor)
    assert (quotient - 1) * divisor < dividend <= quotient * divisor


@given(st.integers(0, 2**80), st.integers(1, 2**40))
def test_round_up_is_the_next_multiple(value: int, multiple: int) -> None:
    rounded = round_up(value, multiple)
    assert rounded % multiple == 0
    assert value <= rounded < value + multiple


# ---------------------------------------------------------------- weights

# Llama 3.1 8B's down projection: (out, in) = (4096, 14336), 58,720,256 elements.
OUT, IN = 4_096, 14_336
ELEMENTS = 58_720_256


@pytest.mark.parametrize(
    ("dtype", "name", "size"),
    [("float32", "fp32", 4), ("bfloat16", "bf16", 2), ("float16", "fp16", 2)],
)
def test_plain_types_are_elements_times_their_width(dtype: Dtype, name: str, size: int) -> None:
    stored = PLAIN[dtype]
    assert stored.name == name
    assert stored.tensor_size(OUT, IN) == ELEMENTS * size
    assert stored.tensor_size(7, 1) == 7 * size
    assert stored.plain_bytes == size
    assert DTYPE_BYTES[dtype] == size


def test_the_compute_types_are_these() -> None:
    assert get_args(Dtype) == tuple(DTYPE_BYTES) == tuple(PLAIN)
    assert [DTYPE_BYTES[dtype] for dtype in get_args(Dtype)] == [4, 2, 2]


def test_fp8_with_one_scale_a_tensor() -> None:
    # An fp32 weight scale and an fp32 activation scale.
    stored = NumberFormat(name="fp8", bits=8, scale_bytes=4, tensor_bytes=4, source="test")
    assert stored.tensor_size(OUT, IN) == ELEMENTS + 4 + 4


def test_fp8_with_one_scale_a_row() -> None:
    stored = NumberFormat(name="fp8", bits=8, block_rows=1, scale_bytes=4, source="test")
    assert stored.tensor_size(OUT, IN) == ELEMENTS + 4_096 * 4


def test_fp8_in_blocks_of_128_by_128() -> None:
    # weight_scale_inv of (32, 112) fp32 values: huggingface/transformers
    # src/transformers/integrations/finegrained_fp8.py@0095b97, FP8Linear.
    stored = NumberFormat(
        name="fp8", bits=8, block_rows=128, block_columns=128, scale_bytes=4, source="test"
    )
    assert stored.tensor_size(OUT, IN) == ELEMENTS + 32 * 112 * 4
    # DeepSeek-V3's kv_a_proj_with_mqa is (576, 7168): 4.5 blocks down are 5 rows of scales.
    assert stored.tensor_size(576, 7_168) == 576 * 7_168 + 5 * 56 * 4


AWQ = NumberFormat(
    name="awq", bits=4, block_rows=1, block_columns=128, scale_bytes=2, zero_bits=4, source="test"
)


def test_awq_is_the_sum_of_its_three_tensors() -> None:
    # casper-hansen/AutoAWQ awq/modules/linear/gemm.py@030fe2a, WQLinear_GEMM: qweight int32
    # (in, out / 8), qzeros int32 (in / group, out / 8), scales fp16 (in / group, out).
    qweight = 14_336 * 512 * 4
    qzeros = 112 * 512 * 4
    scales = 112 * 4_096 * 2
    assert AWQ.tensor_size(OUT, IN) == qweight + qzeros + scales == 30_507_008


@pytest.mark.parametrize(("bits", "words"), [(2, 256), (4, 512), (8, 1_024)])
def test_gptq_is_the_sum_of_its_four_tensors(bits: int, words: int) -> None:
    # AutoGPTQ/AutoGPTQ auto_gptq/nn_modules/qlinear/qlinear_cuda_old.py@179776b: qweight int32
    # (in / 32 * bits, out), qzeros int32 (ceil(in / group), out / 32 * bits), scales fp16
    # (ceil(in / group), out), g_idx int32 (in,).
    stored = NumberFormat(
        name="gptq", bits=bits, block_rows=1, block_columns=128, scale_bytes=2, zero_bits=bits,
        column_bytes=4, source="test",
    )  # fmt: skip
    qweight = 14_336 // 32 * bits * 4_096 * 4
    qzeros = 112 * words * 4
    scales = 112 * 4_096 * 2
    g_idx = 14_336 * 4
    assert stored.tensor_size(OUT, IN) == qweight + qzeros + scales + g_idx


def test_a_group_that_is_cut_short_has_its_own_scales() -> None:
    # 200 inputs in groups of 128 are 2 groups: ceil(in / group).
    assert AWQ.tensor_size(64, 200) == 64 * 200 // 2 + 2 * 64 * 2 + 2 * 64 // 2


def test_mxfp4_is_4_bits_and_a_byte_every_32() -> None:
    # openai/gpt-oss gpt_oss/torch/weights.py@1983a9d: 32 elements in 16 bytes, one scale byte.
    stored = NumberFormat(
        name="mxfp4", bits=4, block_rows=1, block_columns=32, scale_bytes=1, source="test"
    )
    # gpt-oss-20b, one expert's gate_up: (5760, 2880) = 90 blocks a row of 16 + 1 bytes.
    assert stored.tensor_size(5_760, 2_880) == 5_760 * 90 * 17 == 8_812_800


def test_nvfp4_is_4_bits_a_byte_every_16_and_two_fp32_scales() -> None:
    # vllm-project/vllm vllm/model_executor/layers/quantization/modelopt.py@00155cd: weight uint8
    # (out, in / 2), weight_scale fp8 (out, in / 16), weight_scale_2 and input_scale fp32.
    stored = NumberFormat(
        name="nvfp4",
        bits=4,
        block_rows=1,
        block_columns=16,
        scale_bytes=1,
        tensor_bytes=8,
        source="test",
    )
    assert stored.tensor_size(OUT, IN) == ELEMENTS // 2 + 4_096 * 896 + 8


def test_a_span_is_counted_through_the_whole_matrix() -> None:
    # 4 bits, one byte every 64 elements, and one fp32 every 256 of those bytes.
    stored = NumberFormat(
        name="nf4", bits=4, block_rows=1, block_columns=64, scale_bytes=1,
        span_elements=64 * 256, span_bytes=4, source="test",
    )  # fmt: skip
    assert stored.tensor_size(OUT, IN) == ELEMENTS // 2 + ELEMENTS // 64 + 3_584 * 4
    # 5 x 4096 elements are 1.25 spans, though no row fills one.
    assert stored.tensor_size(5, 4_096) == 5 * 2_048 + 5 * 64 + 2 * 4


def test_odd_bits_are_rounded_up_to_bytes_once_a_matrix() -> None:
    stored = NumberFormat(name="int3", bits=3, source="test")
    assert stored.tensor_size(3, 3) == 4
    assert stored.tensor_size(8, 1) == 3


@pytest.mark.parametrize(("rows", "columns"), [(0, 128), (128, 0), (0, 0)])
def test_nothing_takes_no_bytes_not_even_scales(rows: int, columns: int) -> None:
    fixed = NumberFormat(name="fp8", bits=8, scale_bytes=4, tensor_bytes=4, source="test")
    assert fixed.tensor_size(rows, columns) == 0
    assert AWQ.tensor_size(rows, columns) == 0


@pytest.mark.parametrize(
    ("given_bytes", "plain"),
    [
        ({"bits": 8}, 1),
        ({"bits": 64}, 8),
        ({"bits": 16}, 2),
        ({"bits": 4}, None),
        ({"bits": 12}, None),
        ({"bits": 8, "scale_bytes": 4}, None),
        ({"bits": 8, "zero_bits": 8}, None),
        ({"bits": 8, "tensor_bytes": 4}, None),
        ({"bits": 8, "column_bytes": 4}, None),
        ({"bits": 8, "span_bytes": 4, "span_elements": 64}, None),
    ],
)
def test_only_formats_without_scales_have_a_width(
    given_bytes: dict[str, int], plain: int | None
) -> None:
    stored = NumberFormat.model_validate({"name": "x", "source": "test"} | given_bytes)
    assert stored.plain_bytes == plain
    assert isinstance(stored.plain_bytes, int | None)


blocks = st.none() | st.sampled_from((1, 16, 32, 128))
number_formats = st.builds(
    NumberFormat,
    name=st.just("any"),
    bits=st.integers(1, 32),
    block_rows=blocks,
    block_columns=blocks,
    scale_bytes=st.integers(0, 4),
    zero_bits=st.integers(0, 8),
    column_bytes=st.integers(0, 4),
    span_elements=st.sampled_from((64, 16_384)),
    span_bytes=st.integers(0, 4),
    tensor_bytes=st.integers(0, 8),
    source=st.just("test"),
)
sides = st.integers(1, 4_096)


@given(number_formats, sides, sides)
def test_a_matrix_takes_its_elements_and_more(stored: NumberFormat, rows: int, cols: int) -> None:
    size = stored.tensor_size(rows, cols)
    assert 8 * size >= rows * cols * stored.bits
    assert stored.tensor_size(rows + 1, cols) >= size
    assert stored.tensor_size(rows, cols + 1) >= size


@given(number_formats, sides, sides, st.integers(1, 16))
def test_the_parts_of_a_cut_matrix_are_never_less_than_it(
    stored: NumberFormat, rows: int, cols: int, parts: int
) -> None:
    whole = stored.tensor_size(rows, cols)
    assert parts * stored.tensor_size(ceil_div(rows, parts), cols) >= whole
    assert parts * stored.tensor_size(rows, ceil_div(cols, parts)) >= whole


# ---------------------------------------------------------------- caches


def kv(name: str, **fields: int | bool | None) -> KvFormat:
    return KvFormat.model_validate({"name": name, "source": "test"} | fields)


INT8_TOKEN_HEAD = kv("int8_per_token_head", bits_k=8, bits_v=8, scale_bytes_k=4, scale_bytes_v=4)
INT4_TOKEN_HEAD = kv("int4_per_token_head", bits_k=4, bits_v=4, scale_bytes_k=4, scale_bytes_v=4)
NVFP4 = kv("nvfp4", bits_k=4, bits_v=4, scale_block=16)
TURBO_K8V4 = kv("turboquant_k8v4", bits_k=8, bits_v=4, scale_bytes_v=4, even=True)
TURBO_4BIT = kv(
    "turboquant_4bit_nc", bits_k=4, bits_v=4, scale_bytes_k=2, scale_bytes_v=4, even=True
)
TURBO_K3V4 = kv(
    "turboquant_k3v4_nc", bits_k=3, bits_v=4, scale_bytes_k=2, scale_bytes_v=4, even=True
)
TURBO_3BIT = kv(
    "turboquant_3bit_nc", bits_k=3, bits_v=3, scale_bytes_k=2, scale_bytes_v=4, even=True
)


@pytest.mark.parametrize(
    ("stored", "dim_k", "dim_v", "size"),
    [
        # 2 bytes an element, both vectors.
        (plain_kv("bfloat16"), 128, 128, 512),
        (plain_kv("float16"), 192, 128, 640),
        (plain_kv("float32"), 64, 64, 512),
        # One byte an element; scales are weights.
        (FP8_KV, 128, 128, 256),
        (FP8_KV, 192, 128, 320),
        # One fp32 scale for each vector.
        (INT8_TOKEN_HEAD, 128, 128, 264),
        (INT4_TOKEN_HEAD, 128, 128, 136),
        (INT4_TOKEN_HEAD, 192, 128, 168),
        # Half a byte an element and a byte every 16: 64 + 8 a vector.
        (NVFP4, 128, 128, 144),
        (NVFP4, 64, 64, 72),
        # K: h; V: ceil(4h / 8) + 4.
        (TURBO_K8V4, 128, 128, 196),
        (TURBO_K8V4, 96, 96, 148),
        # K: ceil(kb h / 8) + 2; V: ceil(vb h / 8) + 4; the sum is even.
        (TURBO_4BIT, 128, 128, 134),
        (TURBO_K3V4, 128, 128, 118),
        (TURBO_3BIT, 128, 128, 102),
        (TURBO_3BIT, 80, 80, 66),
        (TURBO_K3V4, 72, 72, 70),
        # A latent vector has no second one: 512 + 64 elements.
        (plain_kv("bfloat16"), 576, 0, 1_152),
        (FP8_KV, 576, 0, 576),
        (INT8_TOKEN_HEAD, 576, 0, 580),
    ],
)
def test_a_cell_by_hand(stored: KvFormat, dim_k: int, dim_v: int, size: int) -> None:
    # Layouts as vLLM 0.33.0 has them; the odd sum 69 of the last turboquant row becomes 70.
    assert stored.cell_bytes(dim_k, dim_v) == size
    assert type(stored.cell_bytes(dim_k, dim_v)) is int


def test_what_is_8_bits_wide_without_scales_is_called_fp8() -> None:
    assert FP8_KV.name == "fp8"
    assert FP8_KV.source


@pytest.mark.parametrize("stored", [PLAIN["bfloat16"], FP8_KV], ids=type)
def test_a_format_does_not_change_or_take_unknown_fields(stored: NumberFormat | KvFormat) -> None:
    with pytest.raises(ValidationError):
        stored.name = "other"
    with pytest.raises(ValidationError):
        type(stored).model_validate(stored.model_dump() | {"surprise": 1})


def test_only_formats_that_say_so_are_rounded_to_even() -> None:
    odd = kv("odd", bits_k=8, bits_v=8, scale_bytes_k=1)
    assert odd.cell_bytes(4, 4) == 9
    assert odd.model_copy(update={"even": True}).cell_bytes(4, 4) == 10


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_plain_caches_carry_nothing_but_elements(dtype: Dtype) -> None:
    stored = plain_kv(dtype)
    assert stored.name == dtype
    assert stored.cell_bytes(128, 128) == 256 * DTYPE_BYTES[dtype]


kv_formats = st.sampled_from(
    (plain_kv("bfloat16"), FP8_KV, INT8_TOKEN_HEAD, INT4_TOKEN_HEAD, NVFP4, TURBO_K8V4, TURBO_3BIT)
)


@given(kv_formats, st.integers(1, 1_024), st.integers(0, 1_024))
def test_a_wider_vector_never_takes_less(stored: KvFormat, dim_k: int, dim_v: int) -> None:
    size = stored.cell_bytes(dim_k, dim_v)
    assert stored.cell_bytes(dim_k + 1, dim_v) >= size
    assert stored.cell_bytes(dim_k, dim_v + 1) >= size
    assert 8 * size >= dim_k * stored.bits_k + dim_v * stored.bits_v
