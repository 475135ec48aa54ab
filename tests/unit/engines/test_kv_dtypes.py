"""vLLM's cache types: the user's word, the checkpoint's word, the bytes of a cell."""

from __future__ import annotations

import pytest

from kvplan.engines.vllm.kv_dtypes import KNOWN, SPARSE_CELLS, check_release, resolve
from kvplan.errors import EngineRefusesError, NotModelledError, UnknownNameError
from kvplan.models.formats import Dtype

# Bytes of one token and head of 128 + 128 elements.
CELLS = [
    ("auto", "bfloat16", 512),
    ("auto", "float16", 512),
    ("auto", "float32", 1024),
    ("bfloat16", "bfloat16", 512),
    ("float16", "float16", 512),
    ("float32", "float32", 1024),
    ("fp8", "bfloat16", 256),
    ("fp8_e4m3", "float16", 256),
    ("fp8_e5m2", "float32", 256),
    ("int8_per_token_head", "bfloat16", 264),  # one fp32 scale a side
    ("fp8_per_token_head", "bfloat16", 264),
    ("int4_per_token_head", "bfloat16", 136),
    ("nvfp4", "bfloat16", 144),  # half a byte an element, one scale byte every 16
    ("nvfp4_4over6", "bfloat16", 144),
    # Packed keys (with a norm of 2 bytes below 8 bits), packed values with scale and zero point.
    ("turboquant_k8v4", "bfloat16", 128 + 64 + 4),
    ("turboquant_4bit_nc", "bfloat16", 64 + 2 + 64 + 4),
    ("turboquant_k3v4_nc", "bfloat16", 48 + 2 + 64 + 4),
    ("turboquant_3bit_nc", "bfloat16", 48 + 2 + 48 + 4),
]


@pytest.mark.parametrize(("asked", "dtype", "cell"), CELLS)
def test_the_cell_of_a_type(asked: str, dtype: Dtype, cell: int) -> None:
    name, kv = resolve(asked, dtype, None)
    assert kv.cell_bytes(128, 128) == cell
    assert name == (dtype if asked == "auto" else asked)
    plain = {"fp8_e4m3": "fp8", "fp8_e5m2": "fp8", "nvfp4_4over6": "nvfp4"}
    assert kv.name == plain.get(name, name)
    assert kv.source


def test_a_scale_stands_for_16_elements() -> None:
    assert resolve("nvfp4", "bfloat16", None)[1].cell_bytes(256, 256) == 2 * (128 + 16)


@pytest.mark.parametrize("scheme", ["fp8", "fp8_e4m3", "nvfp4"])
def test_a_checkpoint_prescribes_its_type_under_auto(scheme: str) -> None:
    assert resolve("auto", "bfloat16", scheme) == resolve(scheme, "bfloat16", None)


@pytest.mark.parametrize("asked", ["fp8_e5m2", "bfloat16", "int8_per_token_head"])
def test_the_user_overrules_the_checkpoint(asked: str) -> None:
    assert resolve(asked, "bfloat16", "fp8") == resolve(asked, "bfloat16", None)


@pytest.mark.parametrize(
    ("asked", "dtype"),
    [("float16", "bfloat16"), ("bfloat16", "float16"), ("float32", "bfloat16")],
)
def test_a_plain_type_other_than_the_models_is_refused(asked: str, dtype: Dtype) -> None:
    with pytest.raises(EngineRefusesError, match=f"refuses a {asked} cache .* in {dtype}") as it:
        resolve(asked, dtype, None)
    assert it.value.hint == "Leave --kv-dtype at auto, or use fp8."


def test_a_packed_cell_is_rounded_to_two_bytes() -> None:
    """Heads of 40: keys of 3 bits take 15 + 2 bytes and values 15 + 4; of 4 bits 20 + 2 + 24."""
    assert resolve("turboquant_3bit_nc", "bfloat16", None)[1].cell_bytes(40, 40) == 36
    assert resolve("turboquant_4bit_nc", "bfloat16", None)[1].cell_bytes(40, 40) == 46
    # 8-bit keys of 41 and 4-bit values: 41 + 21 + 4 = 66; of 43: 43 + 22 + 4 = 69, so 70.
    assert resolve("turboquant_k8v4", "bfloat16", None)[1].cell_bytes(41, 41) == 66
    assert resolve("turboquant_k8v4", "bfloat16", None)[1].cell_bytes(43, 43) == 70


def test_keys_and_values_are_packed_each_in_its_own_bits() -> None:
    """128 elements of 3 bits and 2 bytes; 64 of 4 bits and 4 bytes."""
    kv = resolve("turboquant_k3v4_nc", "bfloat16", None)[1]
    assert kv.cell_bytes(128, 64) == 48 + 2 + 32 + 4
    assert resolve("turboquant_k8v4", "bfloat16", None)[1].cell_bytes(128, 64) == 128 + 32 + 4


@pytest.mark.parametrize(("asked", "cell"), [("fp8_ds_mla", 656), ("nvfp4_ds_mla", 352)])
def test_cells_that_kernels_prescribe_as_a_whole(asked: str, cell: int) -> None:
    """512 bytes of fp8, 16 of scales, 64 positions in bf16; and the FP4 sibling."""
    assert SPARSE_CELLS[asked] == cell
    name, kv = resolve(asked, "bfloat16", None)
    assert (name, kv.bits_k) == (asked, 8)
    assert SPARSE_CELLS["fp8_ds_mla"] == 512 + 16 + 2 * 64


@pytest.mark.parametrize(
    "asked", ["ultraquant_4bit", "octave_k3v4", "octave_k3v3", "octave_k3v3_compact"]
)
def test_a_type_to_come_is_refused_by_name(asked: str) -> None:
    with pytest.raises(NotModelledError, match=f"does not size vLLM's {asked} cache") as raised:
        resolve(asked, "bfloat16", None)
    assert raised.value.hint == "Use auto or fp8."
    assert asked not in KNOWN


SOME = "It has auto, float32, bfloat16, float16, fp8, fp8_e4m3, fp8_e5m2 and others."


@pytest.mark.parametrize(
    ("asked", "hint"),
    [
        ("fp8_e4m2", "fp8_e4m3"),
        ("int8_per_token", "int8_per_token_head"),
        ("q8_0" * 3000, SOME),
    ],
)
def test_an_unknown_type_is_answered_with_the_nearest(asked: str, hint: str) -> None:
    with pytest.raises(UnknownNameError, match="no KV cache type") as raised:
        resolve(asked, "bfloat16", None)
    assert raised.value.hint is not None
    assert hint in raised.value.hint
    assert len(raised.value.message) < 200


def test_all_names_are_offered() -> None:
    assert {asked for asked, *_ in CELLS} < set(KNOWN)
    assert len(KNOWN) == len(set(KNOWN)) == 18


@pytest.mark.parametrize(
    ("kv_dtype", "last_without", "first_with"),
    [
        ("bfloat16", "0.10.2", "0.11.0"),
        ("fp8_ds_mla", "0.11.0", "0.11.2"),
        ("float16", "0.17.0", "0.18.0"),
        ("turboquant_k8v4", "0.19.0", "0.20.0"),
        ("nvfp4", "0.19.1", "0.20"),
        ("int4_per_token_head", "0.24.0", "0.25.0"),
        ("nvfp4_4over6", "0.27.1", "0.28.0"),
        ("nvfp4_ds_mla", "0.29.0", "0.33.0"),
    ],
)
def test_a_release_refuses_a_type_that_came_later(
    kv_dtype: str, last_without: str, first_with: str
) -> None:
    check_release(kv_dtype, first_with)
    with pytest.raises(EngineRefusesError, match=rf"vLLM {last_without} has no {kv_dtype} cache"):
        check_release(kv_dtype, last_without)


@pytest.mark.parametrize("kv_dtype", ["auto", "fp8", "fp8_e4m3", "fp8_e5m2"])
def test_types_that_every_release_takes(kv_dtype: str) -> None:
    check_release(kv_dtype, "0.6.0")
