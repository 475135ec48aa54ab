"""vLLM's cache types: the user's word, the checkpoint's word, the bytes of a cell."""

from __future__ import annotations

import pytest

from kvplan.engines.vllm.kv_dtypes import KNOWN, resolve
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
]


@pytest.mark.parametrize(("asked", "dtype", "cell"), CELLS)
def test_the_cell_of_a_type(asked: str, dtype: Dtype, cell: int) -> None:
    name, kv = resolve(asked, dtype, None)
    assert kv.cell_bytes(128, 128) == cell
    assert name == (dtype if asked == "auto" else asked)
    assert kv.name == ("fp8" if name.startswith(("fp8_e4", "fp8_e5")) else name)
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


@pytest.mark.parametrize(
    "asked",
    ["turboquant_k8v4", "turboquant_4bit_nc", "turboquant_k3v4_nc", "turboquant_3bit_nc",
     "nvfp4_4over6", "fp8_ds_mla", "nvfp4_ds_mla"],
)  # fmt: skip
def test_a_type_to_come_is_refused_by_name(asked: str) -> None:
    with pytest.raises(NotModelledError, match=f"does not size vLLM's {asked} cache") as raised:
        resolve(asked, "bfloat16", None)
    assert raised.value.hint == "Use auto or fp8."


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
