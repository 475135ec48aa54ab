"""Attention backends by device and cache type: names, block sizes, refusals."""

from __future__ import annotations

import pytest

from kvplan.engines.vllm.backends import (
    CHECKED,
    Backend,
    attention_backend,
    block_size,
    latent_backend,
)
from kvplan.errors import EngineRefusesError

ADA, HOPPER, BLACKWELL = (8, 9), (9, 0), (10, 0)


@pytest.mark.parametrize(
    ("kv_dtype", "ada", "hopper", "blackwell"),
    [
        ("bfloat16", "FLASH_ATTN", "FLASH_ATTN", "FLASHINFER"),
        ("float16", "FLASH_ATTN", "FLASH_ATTN", "FLASHINFER"),
        ("fp8", "FLASHINFER", "FLASH_ATTN", "FLASHINFER"),
        ("fp8_e4m3", "FLASHINFER", "FLASH_ATTN", "FLASHINFER"),
        ("fp8_e5m2", "FLASHINFER", "FLASHINFER", "FLASHINFER"),
        ("int8_per_token_head", "TRITON_ATTN", "TRITON_ATTN", "TRITON_ATTN"),
        ("fp8_per_token_head", "TRITON_ATTN", "TRITON_ATTN", "TRITON_ATTN"),
        ("int4_per_token_head", "TRITON_ATTN", "TRITON_ATTN", "TRITON_ATTN"),
        ("nvfp4", None, None, "FLASHINFER"),
    ],
)
def test_regular_attention(
    kv_dtype: str, ada: str | None, hopper: str | None, blackwell: str
) -> None:
    for sm, name in zip(CHECKED, (ada, hopper, blackwell), strict=True):
        if name is None:
            message = f"no backend for an nvfp4 cache on compute capability {sm[0]}.{sm[1]}."
            with pytest.raises(EngineRefusesError, match=message) as raised:
                attention_backend(kv_dtype, sm)
            assert raised.value.hint == "nvfp4 needs Blackwell (10.0); use fp8 here."
        else:
            assert attention_backend(kv_dtype, sm) == Backend(name, 16)


def test_other_devices_take_the_nearest_row() -> None:
    for sm in ((7, 5), (8, 0), (8, 6)):
        assert attention_backend("fp8", sm) == attention_backend("fp8", ADA)
    assert attention_backend("fp8", (12, 0)) == attention_backend("fp8", BLACKWELL)


@pytest.mark.parametrize(
    ("kv_dtype", "sm", "backend"),
    [
        ("bfloat16", ADA, Backend("TRITON_MLA", 16)),
        ("fp8", ADA, Backend("TRITON_MLA", 16)),
        ("bfloat16", HOPPER, Backend("FLASH_ATTN_MLA", 16)),
        ("fp8", HOPPER, Backend("FLASHMLA", 64)),
        ("fp8_e4m3", HOPPER, Backend("FLASHMLA", 64)),
        ("bfloat16", BLACKWELL, Backend("FLASHINFER_MLA", 32)),
        ("fp8", BLACKWELL, Backend("FLASHINFER_MLA", 32)),
    ],
)
def test_latent_attention(kv_dtype: str, sm: tuple[int, int], backend: Backend) -> None:
    assert latent_backend(kv_dtype, sm, sparse=False) == backend


def test_sparse_latent_attention_needs_hopper() -> None:
    assert latent_backend("bfloat16", HOPPER, sparse=True) == Backend("MLA_SPARSE", 64)
    assert latent_backend("fp8", BLACKWELL, sparse=True) == Backend("MLA_SPARSE", 64)
    with pytest.raises(EngineRefusesError, match=r"no sparse-MLA backend below .* 9\.0") as raised:
        latent_backend("bfloat16", ADA, sparse=True)
    assert raised.value.hint == "Use a Hopper or Blackwell GPU."


@pytest.mark.parametrize("sm", CHECKED)
@pytest.mark.parametrize(
    "kv_dtype",
    ["fp8_e5m2", "nvfp4", "int8_per_token_head", "fp8_per_token_head", "int4_per_token_head"],
)
def test_types_that_no_latent_backend_has(kv_dtype: str, sm: tuple[int, int]) -> None:
    with pytest.raises(EngineRefusesError, match=f"no MLA backend for a {kv_dtype} cache") as it:
        latent_backend(kv_dtype, sm, sparse=False)
    assert it.value.hint == "Use auto or fp8."


@pytest.mark.parametrize(
    ("base", "asked", "size"),
    [(16, None, 16), (32, None, 32), (64, None, 64), (8, None, 16), (16, 16, 16), (16, 48, 48),
     (64, 128, 128), (32, 32, 32)],
)  # fmt: skip
def test_block_sizes(base: int, asked: int | None, size: int) -> None:
    assert block_size(Backend("X", base), asked) == size


@pytest.mark.parametrize(
    ("base", "asked"), [(16, 8), (16, 24), (64, 16), (32, 48), (16, 0), (16, -16)]
)
def test_a_block_size_that_a_backend_does_not_take(base: int, asked: int) -> None:
    with pytest.raises(EngineRefusesError, match=f"multiples of {base} tokens, not {asked}") as it:
        block_size(Backend("X", base), asked)
    assert it.value.hint == f"Use -o block_size={base} or leave it out."
