"""What one layer's cache takes a token, by cache type, device and ranks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from real_models import full, real, toy, window

from kvplan.engines.vllm.backends import Backend
from kvplan.engines.vllm.cells import Cell, CellContext, cell_of, ignores_kv_dtype, stored
from kvplan.engines.vllm.kv_dtypes import resolve
from kvplan.engines.vllm.pages import Sides
from kvplan.errors import EngineRefusesError, NotModelledError
from kvplan.models.caches import (
    ChunkedCache,
    CrossCache,
    FullCache,
    IndexerCache,
    LatentCache,
)

ADA, HOPPER, BLACKWELL = (8, 9), (9, 0), (10, 0)
MLA = LatentCache(latent_dim=512, rope_dim=64)
INDEXER = IndexerCache(head_dim=128)
WHISPER = CrossCache(kv_heads=20, head_dim=64, head_dim_v=64, source_tokens=1500)


def context(kv_dtype: str = "auto", **changes: Any) -> CellContext:
    name, kv = resolve(kv_dtype, "bfloat16", None)
    plain = CellContext(
        architecture="LlamaForCausalLM",
        kv_dtype=name,
        kv=kv,
        dtype="bfloat16",
        tp=1,
        dcp=1,
        sm=HOPPER,
        grouped=True,
        encoder_tokens=None,
        sparse=False,
    )
    return replace(plain, **changes)


def cell(cache: Any, kv_dtype: str = "auto", *, skipped: bool = False, **changes: Any) -> Cell:
    return cell_of(cache, context(kv_dtype, **changes), skipped=skipped)


# KV heads of the rank × (keys + values) × bytes an element, with what a type carries besides.
@pytest.mark.parametrize(
    ("kv_dtype", "changes", "token", "unpacked"),
    [
        ("auto", {}, 8 * 256 * 2, 8 * 256 * 2),
        ("auto", {"tp": 4}, 2 * 256 * 2, 2 * 256 * 2),
        ("auto", {"tp": 8}, 256 * 2, 256 * 2),
        ("auto", {"tp": 32}, 256 * 2, 256 * 2),  # replicated, not split
        ("fp8", {}, 8 * 256, 8 * 256),
        ("int8_per_token_head", {}, 8 * (256 + 8), 8 * 256),
        ("int4_per_token_head", {}, 8 * (128 + 8), 8 * 256),
        ("nvfp4", {"sm": BLACKWELL}, 8 * (128 + 16), 8 * 256),
        # 128 + 64 + 4 bytes a head; where packing is unknown, 2 × 128.
        ("turboquant_k8v4", {}, 8 * 196, 8 * 256),
    ],
)
def test_a_token_of_regular_attention(
    kv_dtype: str, changes: dict[str, Any], token: int, unpacked: int
) -> None:
    found = cell(full(), kv_dtype, **changes)
    assert (found.kind, found.token_bytes, found.unpacked_bytes) == ("full", token, unpacked)
    assert found.span == 0
    assert found.sides is not None
    assert found.sides.kv_heads == max(1, 8 // changes.get("tp", 1))
    assert found.sides.key_bytes + found.sides.value_bytes == token


def test_keys_and_values_are_told_apart() -> None:
    """4 heads of 192 and 128 elements of two bytes."""
    found = cell(full(4, 192, 128))
    assert found.sides == Sides(4, 4 * 192 * 2, 4 * 128 * 2)
    assert found.token_bytes == found.unpacked_bytes == 4 * 320 * 2
    # 192 and 64 bytes of 8-bit keys and 4-bit values of equal heads.
    packed = cell(full(1), "turboquant_k8v4").sides
    assert packed == Sides(1, 128, 68)


def test_windows_chunks_and_encoders_say_how_far_they_reach() -> None:
    chunk = ChunkedCache(kv_heads=8, head_dim=128, head_dim_v=128, chunk=8192)
    assert (cell(window(1000)).kind, cell(window(1000)).span) == ("window", 1000)
    assert (cell(chunk).kind, cell(chunk).span) == ("chunked", 8192)
    assert (cell(WHISPER).kind, cell(WHISPER).span) == ("cross", 1500)
    for cache in (window(1000), chunk):
        assert cell(cache).token_bytes == cell(full()).token_bytes
    assert cell(WHISPER).token_bytes == 20 * 128 * 2


@pytest.mark.parametrize(("architecture", "span"), [("Cohere2ForCausalLM", 4097), ("Other", 4096)])
def test_cohere2_asks_for_one_more_token(architecture: str, span: int) -> None:
    assert cell(window(4096), architecture=architecture).span == span
    assert cell(full(), architecture=architecture).span == 0


def test_an_encoder_is_planned_for_a_batch_since_0_11() -> None:
    assert cell(WHISPER, encoder_tokens=8192).span == 8192
    endless = WHISPER.model_copy(update={"source_tokens": None})
    assert cell(endless, encoder_tokens=8192).span == 8192
    with pytest.raises(NotModelledError, match="tokens of the encoder") as raised:
        cell(endless)
    assert raised.value.hint == "Use vLLM 0.11 or later."


# A latent vector is one a token, however many ranks there are.
@pytest.mark.parametrize(
    ("kv_dtype", "sm", "backend", "token"),
    [
        ("auto", HOPPER, "FLASH_ATTN_MLA", 1152),
        ("fp8", HOPPER, "FLASHMLA", 576),
        ("auto", BLACKWELL, "FLASHINFER_MLA", 1152),
        ("fp8", BLACKWELL, "FLASHINFER_MLA", 576),
        ("auto", ADA, "TRITON_MLA", 1152),
    ],
)
@pytest.mark.parametrize("tp", [1, 8])
def test_a_token_of_latent_attention(
    kv_dtype: str, sm: tuple[int, int], backend: str, token: int, tp: int
) -> None:
    found = cell(MLA, kv_dtype, sm=sm, tp=tp)
    assert (found.kind, found.token_bytes, found.backend.name) == ("latent", token, backend)
    assert (found.sides, found.span) == (None, 0)


# 512 + 16 + 128 bytes on Hopper; the plain vector on Blackwell; the FP4 sibling where asked for.
@pytest.mark.parametrize(
    ("kv_dtype", "sm", "token"),
    [
        ("auto", HOPPER, 1152),
        ("fp8", HOPPER, 656),
        ("fp8_e4m3", HOPPER, 656),
        ("fp8_ds_mla", HOPPER, 656),
        ("auto", BLACKWELL, 1152),
        ("fp8", BLACKWELL, 576),
        ("fp8_ds_mla", BLACKWELL, 656),
        ("nvfp4_ds_mla", BLACKWELL, 352),
    ],
)
def test_a_token_of_sparse_latent_attention(kv_dtype: str, sm: tuple[int, int], token: int) -> None:
    assert cell(MLA, kv_dtype, sm=sm, sparse=True).token_bytes == token
    # The indexer beside it keeps 128 bytes and a scale of four, whatever the type.
    indexer = cell(INDEXER, kv_dtype, sm=sm, sparse=True)
    assert (indexer.kind, indexer.token_bytes) == ("indexer", 132)
    assert indexer.backend.base == 64


def test_ranks_share_sparse_latent_requests_on_hopper_only_in_8_bits() -> None:
    with pytest.raises(EngineRefusesError, match="sparse MLA with a cache that is not fp8") as it:
        cell(MLA, dcp=2, sparse=True)
    assert it.value.hint == "Use --kv-dtype fp8, or leave out --dcp."
    assert cell(MLA, "fp8", dcp=2, sparse=True).token_bytes == 656
    assert cell(MLA, dcp=2, sparse=True, sm=BLACKWELL).token_bytes == 1152
    assert cell(MLA, dcp=2).token_bytes == 1152


def test_a_layer_that_is_left_out_keeps_the_models_type() -> None:
    assert cell(full(), "fp8", skipped=True) == cell(full())
    assert cell(full(), "turboquant_3bit_nc", skipped=True) == cell(full())
    assert cell(window(9), "turboquant_3bit_nc", skipped=True) == cell(window(9))
    assert cell(MLA, "fp8", skipped=True) == cell(MLA)


def test_a_latent_vector_is_unpacked_where_vllm_has_no_kernel() -> None:
    unpacked = FullCache(kv_heads=40, head_dim=96, head_dim_v=96)
    latent = LatentCache(latent_dim=256, rope_dim=32, unpacked=unpacked)
    assert stored(latent, "MiniCPM3ForCausalLM") is unpacked
    assert stored(latent, "DeepseekV3ForCausalLM") is latent
    assert stored(MLA, "MiniCPM3ForCausalLM") is MLA
    assert stored(unpacked, "MiniCPM3ForCausalLM") is unpacked


def test_falcon_ignores_the_cache_type() -> None:
    assert ignores_kv_dtype(real("falcon-7b"))
    assert not ignores_kv_dtype(toy(full()))


def test_unequal_keys_and_values_have_no_8_bit_backend_on_blackwell() -> None:
    with pytest.raises(EngineRefusesError, match="no fp8 backend for unequal") as raised:
        cell(full(4, 192, 128), "fp8", sm=BLACKWELL)
    assert raised.value.hint == "Use --kv-dtype auto."
    with pytest.raises(EngineRefusesError, match="no nvfp4 backend for unequal"):
        cell(full(4, 192, 128), "nvfp4", sm=BLACKWELL)
    assert cell(full(4, 192, 128), "fp8").token_bytes == 4 * 320
    assert cell(full(4, 192, 128), sm=BLACKWELL).token_bytes == 4 * 640
    assert cell(full(4, 128, 128), "fp8", sm=BLACKWELL).token_bytes == 4 * 256


def test_turboquant_and_fp4_refuse_what_their_kernels_lack() -> None:
    with pytest.raises(EngineRefusesError, match="no TurboQuant backend for window attention"):
        cell(window(100), "turboquant_k8v4")
    with pytest.raises(EngineRefusesError, match="no nvfp4 backend for cross attention") as raised:
        cell(WHISPER, "nvfp4", sm=BLACKWELL)
    assert raised.value.hint == "Use --kv-dtype auto or fp8."
    assert cell(WHISPER, "fp8", sm=BLACKWELL).token_bytes == 20 * 128


@pytest.mark.parametrize(
    ("head_dim", "grouped", "sm", "backend"),
    [
        (512, True, HOPPER, Backend("FLASH_ATTN", 64, (64,))),
        (256, True, HOPPER, Backend("FLASH_ATTN", 16)),
        (256, False, BLACKWELL, Backend("FLASHINFER", 16, (16, 32, 64))),
    ],
)
def test_the_backend_depends_on_heads(
    head_dim: int, sm: tuple[int, int], backend: Backend, *, grouped: bool
) -> None:
    assert cell(full(8, head_dim), "fp8", sm=sm, grouped=grouped).backend == backend
