"""Attention backends by device and cache type: names, block sizes, refusals."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvplan.engines.vllm.backends import (
    CHECKED,
    COMPRESSED,
    DEFAULT_BLOCK,
    Backend,
    attention_backend,
    check_turboquant,
    latent_backend,
)
from kvplan.engines.vllm.kv_dtypes import SPARSE_CELLS, TURBOQUANT
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
        ("nvfp4_4over6", None, None, "FLASHINFER"),
        ("turboquant_k8v4", "TURBOQUANT", "TURBOQUANT", "TURBOQUANT"),
        ("turboquant_3bit_nc", "TURBOQUANT", "TURBOQUANT", "TURBOQUANT"),
    ],
)
def test_regular_attention(
    kv_dtype: str, ada: str | None, hopper: str | None, blackwell: str
) -> None:
    for sm, name in zip((ADA, HOPPER, BLACKWELL), (ada, hopper, blackwell), strict=True):
        if name is None:
            message = f"for an {kv_dtype} cache on compute capability {sm[0]}.{sm[1]}."
            with pytest.raises(EngineRefusesError, match=message) as raised:
                attention_backend(kv_dtype, sm)
            assert raised.value.hint == f"{kv_dtype} needs Blackwell (10.0); use fp8 here."
        else:
            found = attention_backend(kv_dtype, sm)
            assert (found.name, found.base) == (name, DEFAULT_BLOCK)


EVERY_MULTIPLE: tuple[int, ...] = ()


@pytest.mark.parametrize(
    ("kv_dtype", "sm", "grouped", "sizes"),
    [
        ("bfloat16", HOPPER, True, EVERY_MULTIPLE),
        ("int8_per_token_head", BLACKWELL, True, EVERY_MULTIPLE),
        ("fp8", ADA, True, (16, 32, 64)),
        ("fp8_e5m2", HOPPER, True, (16, 32, 64)),
        # TRT-LLM's kernels are for data-centre Blackwell and grouped queries.
        ("bfloat16", BLACKWELL, True, (16, 32, 64, 128, 256, 512, 1024)),
        ("bfloat16", BLACKWELL, False, (16, 32, 64)),
        ("bfloat16", (10, 3), True, (16, 32, 64, 128, 256, 512, 1024)),
        ("bfloat16", (12, 0), True, (16, 32, 64)),
        ("turboquant_4bit_nc", HOPPER, True, (16, 32, 64, 128)),
    ],
)
def test_blocks_that_kernels_run_unsplit(
    kv_dtype: str, sm: tuple[int, int], *, grouped: bool, sizes: tuple[int, ...]
) -> None:
    assert attention_backend(kv_dtype, sm, grouped=grouped).sizes == sizes


@pytest.mark.parametrize(
    ("kv_dtype", "sm", "head_dim", "base"),
    [
        ("fp8", HOPPER, 512, 64),
        ("fp8_e4m3", HOPPER, 512, 64),
        ("fp8", HOPPER, 256, 16),
        ("bfloat16", HOPPER, 512, 16),
        ("fp8", BLACKWELL, 512, 16),
        ("fp8", ADA, 512, 16),
    ],
)
def test_wide_heads_in_8_bits_take_longer_blocks_on_hopper(
    kv_dtype: str, sm: tuple[int, int], head_dim: int, base: int
) -> None:
    assert attention_backend(kv_dtype, sm, head_dim=head_dim).base == base


@pytest.mark.parametrize("kv_dtype", sorted(SPARSE_CELLS))
@pytest.mark.parametrize("sm", CHECKED)
def test_cells_of_sparse_mla_are_for_it_alone(kv_dtype: str, sm: tuple[int, int]) -> None:
    with pytest.raises(EngineRefusesError, match=f"{kv_dtype} for sparse MLA alone") as raised:
        attention_backend(kv_dtype, sm)
    assert raised.value.hint == "Use --kv-dtype auto or fp8."
    with pytest.raises(EngineRefusesError, match=f"{kv_dtype} for sparse MLA alone") as raised:
        latent_backend(kv_dtype, sm, sparse=False)
    assert raised.value.hint == "Use --kv-dtype auto or fp8."


@pytest.mark.parametrize("kind", ["window", "chunked", "cross", "latent"])
def test_turboquant_is_for_full_attention(kind: str) -> None:
    check_turboquant("full")
    with pytest.raises(
        EngineRefusesError, match=f"no TurboQuant backend for {kind} attention"
    ) as it:
        check_turboquant(kind)
    assert it.value.hint == "Use --kv-dtype auto or fp8."


# (16, 32, 64): the largest of them that fits; every multiple of 16: rounded down; never none.
@pytest.mark.parametrize(
    ("backend", "tokens", "block"),
    [
        (Backend("X", 16), 16, 16),
        (Backend("X", 16), 31, 16),
        (Backend("X", 16), 1000, 992),
        (Backend("X", 16), 15, 16),
        (Backend("X", 16), 0, 16),
        (Backend("X", 16, (16, 32, 64)), 1000, 64),
        (Backend("X", 16, (16, 32, 64)), 63, 32),
        (Backend("X", 16, (16, 32, 64)), 64, 64),
        (Backend("X", 16, (16, 32, 64)), 15, 16),
        (Backend("X", 32, (32, 64)), 1, 32),
    ],
)
def test_the_largest_kernel_block_within(backend: Backend, tokens: int, block: int) -> None:
    assert backend.largest_within(tokens) == block


@given(st.sampled_from([16, 32, 64]), st.integers(0, 5000))
def test_a_kernel_block_is_a_multiple_that_fits_where_one_does(base: int, tokens: int) -> None:
    block = Backend("X", base).largest_within(tokens)
    assert block % base == 0
    assert block == base or block <= tokens < block + base


def test_deepseek_v4_has_kernels_of_its_own() -> None:
    assert (COMPRESSED.base, COMPRESSED.sizes) == (256, (256,))


def test_other_devices_take_the_nearest_row() -> None:
    for sm in ((7, 5), (8, 0), (8, 6)):
        assert attention_backend("fp8", sm) == attention_backend("fp8", ADA)
    assert attention_backend("fp8", (12, 0)) == attention_backend("fp8", BLACKWELL, grouped=False)
    assert latent_backend("fp8", (12, 0), sparse=False) == latent_backend(
        "fp8", BLACKWELL, sparse=False
    )


@pytest.mark.parametrize(
    ("kv_dtype", "sm", "backend"),
    [
        ("bfloat16", ADA, Backend("TRITON_MLA", 16)),
        ("fp8", ADA, Backend("TRITON_MLA", 16)),
        ("bfloat16", HOPPER, Backend("FLASH_ATTN_MLA", 16)),
        ("fp8", HOPPER, Backend("FLASHMLA", 64, (64,))),
        ("fp8_e4m3", HOPPER, Backend("FLASHMLA", 64, (64,))),
        ("bfloat16", BLACKWELL, Backend("FLASHINFER_MLA", 32, (32, 64))),
        ("fp8", BLACKWELL, Backend("FLASHINFER_MLA", 32, (32, 64))),
    ],
)
def test_latent_attention(kv_dtype: str, sm: tuple[int, int], backend: Backend) -> None:
    assert latent_backend(kv_dtype, sm, sparse=False) == backend


def test_sparse_latent_attention_needs_hopper() -> None:
    sparse = Backend("MLA_SPARSE", 64, (64,))
    assert latent_backend("bfloat16", HOPPER, sparse=True) == sparse
    assert latent_backend("fp8", BLACKWELL, sparse=True) == sparse
    assert latent_backend("fp8_ds_mla", HOPPER, sparse=True) == sparse
    assert latent_backend("nvfp4_ds_mla", BLACKWELL, sparse=True) == sparse
    with pytest.raises(EngineRefusesError, match="nvfp4_ds_mla cache before Blackwell") as raised:
        latent_backend("nvfp4_ds_mla", HOPPER, sparse=True)
    assert raised.value.hint == "Use --kv-dtype fp8."
    with pytest.raises(EngineRefusesError, match=r"no sparse-MLA backend below .* 9\.0") as raised:
        latent_backend("bfloat16", ADA, sparse=True)
    assert raised.value.hint == "Use a Hopper or Blackwell GPU."


@pytest.mark.parametrize("sm", CHECKED)
@pytest.mark.parametrize(
    "kv_dtype",
    ["fp8_e5m2", "nvfp4", "nvfp4_4over6", "int8_per_token_head", "fp8_per_token_head",
     "int4_per_token_head", *TURBOQUANT],
)  # fmt: skip
def test_types_that_no_latent_backend_has(kv_dtype: str, sm: tuple[int, int]) -> None:
    for sparse in (False, True):
        with pytest.raises(EngineRefusesError, match=f"no MLA backend for a {kv_dtype} cac") as it:
            latent_backend(kv_dtype, sm, sparse=sparse)
        assert it.value.hint == "Use auto or fp8."
