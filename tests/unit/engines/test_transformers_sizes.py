"""Bytes of cached tensors by hand, from cache_utils.py of transformers 5.24.0."""

from __future__ import annotations

import pytest

from kvplan.engines.transformers.kept import Kept, Rows
from kvplan.engines.transformers.quantized import Scheme, quantized_bytes, refusal
from kvplan.engines.transformers.sizes import Layout, Moment, Size, cache_size, held

# Llama 3.1 8B: 8 heads, 128 elements a key and a value, bfloat16.
LLAMA = Rows(heads=8, key_dim=128, value_dim=128)
WINDOW = Rows(heads=8, key_dim=128, value_dim=128, window=256)
BF16 = Layout(element_bytes=2)


def scheme(**changes: object) -> Scheme:
    """Four bits with quanto, as generate() has it by default."""
    plain = {
        "backend": "quanto",
        "nbits": 4,
        "group": 64,
        "residual": 128,
        "axis_key": 0,
        "axis_value": 0,
        "element_bytes": 2,
    }
    return Scheme(**{**plain, **changes})  # type: ignore[arg-type]


def test_a_full_layer_holds_every_token() -> None:
    kept = (Kept("full", LLAMA, 0, (0, 1)),)
    # 2 layers x 2 x 8 heads x 128 x 305 tokens x 2 bytes x 2 sequences
    assert cache_size(kept, BF16, Moment(2, 300, 5)) == Size(4_997_120, 4_997_120)


@pytest.mark.parametrize(
    ("prompt", "steps", "tokens", "behind"),
    [
        (1, 0, 1, 1),
        (255, 0, 255, 255),
        (256, 0, 255, 256),  # the last of a window is the next token
        (300, 0, 255, 300),  # a view of the whole prompt
        (300, 1, 255, 256),  # one step: kept and new, of which a view
        (10, 5, 15, 15),
        (250, 5, 255, 255),
        (250, 6, 255, 256),
    ],
)
def test_a_window_keeps_one_token_less(prompt: int, steps: int, tokens: int, behind: int) -> None:
    assert held(WINDOW, None, Moment(1, prompt, steps)) == (tokens, behind)


def test_a_window_of_one_token_keeps_all() -> None:
    narrow = Rows(heads=1, key_dim=1, value_dim=1, window=1)
    assert held(narrow, None, Moment(1, 7, 2)) == (9, 9)


def test_static_tensors_have_the_length_they_were_made_for() -> None:
    moment = Moment(1, 10)
    assert held(LLAMA, 64, moment) == (64, 64)
    assert held(WINDOW, 64, moment) == (64, 64)
    assert held(WINDOW, 512, moment) == (256, 256)


def test_an_encoder_is_as_long_as_its_source_or_the_prompt() -> None:
    whisper = Rows(heads=20, key_dim=64, value_dim=64, source=1500)
    any_length = Rows(heads=20, key_dim=64, value_dim=64, source=0)
    assert held(whisper, None, Moment(1, 7, 5)) == (1500, 1500)
    assert held(any_length, None, Moment(1, 7, 5)) == (7, 7)


def test_states_do_not_grow() -> None:
    kept = (Kept("recurrent", None, 1000, (0, 1, 2)),)
    assert cache_size(kept, BF16, Moment(2, 9, 9)) == Size(6000, 6000)


def test_four_bits_cost_half_a_byte_and_a_scale_and_a_shift_a_group() -> None:
    # 8 x 256 x 128 = 262,144 elements: 131,072 bytes, 4,096 groups of 2 + 2 bytes; twice.
    assert quantized_bytes(LLAMA, scheme(), 1, 256, 0) == 2 * (131_072 + 16_384)


def test_tokens_wait_until_there_are_residual_length_of_them() -> None:
    packed = quantized_bytes(LLAMA, scheme(), 1, 256, 0)
    row = 2 * 8 * 128 * 2
    assert quantized_bytes(LLAMA, scheme(), 1, 256, 127) == packed + 127 * row
    assert quantized_bytes(LLAMA, scheme(), 1, 256, 128) == quantized_bytes(
        LLAMA, scheme(), 1, 384, 0
    )


@pytest.mark.parametrize(
    ("axis", "bytes_of_numbers"),
    [
        (0, 7 * 4096 * 4),  # 64 rows: seven int32 of ten numbers each, 4,096 columns
        (1, 410 * 64 * 4),  # 4,096 rows: 410 int32, 64 columns
    ],
)
def test_three_bits_are_packed_by_tens(axis: int, bytes_of_numbers: int) -> None:
    hqq = scheme(backend="hqq", nbits=3, axis_key=axis, axis_value=axis)
    assert quantized_bytes(LLAMA, hqq, 1, 256, 0) == 2 * (bytes_of_numbers + 16_384)


def test_fp8_is_a_byte_an_element_and_nothing_waits() -> None:
    assert quantized_bytes(LLAMA, scheme(backend="fp8"), 2, 300, 20) == 2 * 2 * 8 * 320 * 128


def test_quanto_wants_groups_to_divide_what_lies_along_the_axis() -> None:
    last = scheme(axis_key=-1, axis_value=-1, residual=16)
    assert refusal(LLAMA, last, 1, 256, 0) is None
    found = refusal(LLAMA, last, 1, 250, 0)  # 8 x 250 = 2,000
    assert found == "quanto: group size 64 does not divide 2000."
    assert refusal(LLAMA, scheme(), 1, 250, 140) is None


def test_what_divides_at_first_need_not_when_it_is_packed_again() -> None:
    last = scheme(axis_key=-1, axis_value=-1, residual=3)
    assert refusal(LLAMA, last, 1, 256, 2) is None
    assert refusal(LLAMA, last, 1, 256, 3) == "quanto: group size 64 does not divide 2072."


def test_hqq_does_not_unpack_three_bits_along_axis_1() -> None:
    hqq = scheme(backend="hqq", nbits=3, axis_key=1, axis_value=1)
    assert refusal(LLAMA, hqq, 1, 256, 0) is None  # nothing is unpacked yet
    assert refusal(LLAMA, hqq, 1, 256, 10) is not None
    # 2 x 32 sequences of heads are one group: the row is broadcast, wrong but alive.
    assert refusal(Rows(32, 96, 96), hqq, 2, 300, 20) is None


def test_hqq_packs_whole_bytes() -> None:
    odd = scheme(backend="hqq", nbits=1, axis_key=1, axis_value=1)
    assert refusal(Rows(1, 64, 64), odd, 1, 12, 0) == (
        "hqq packs 8 rows into one, and 12 are no multiple of that."
    )
    assert refusal(Rows(1, 60, 64), odd, 1, 1, 0) == (
        "hqq: group size 64 does not divide 60 elements."
    )
