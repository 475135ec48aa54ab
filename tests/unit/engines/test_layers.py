"""From a model's layers to pages: one block size for all, states padded, windows cut to fit."""

from __future__ import annotations

from typing import Any

import pytest
import test_cells
from real_models import full, real, toy, window

from kvplan.engines.vllm.cells import CellContext, ignores_kv_dtype
from kvplan.engines.vllm.history import rules_for
from kvplan.engines.vllm.layers import LayerContext, check_heads, kv_heads, layer_pages
from kvplan.engines.vllm.pages import PageSpec, Sides
from kvplan.engines.vllm.states import Mode, StateContext
from kvplan.errors import EngineRefusesError, NotModelledError
from kvplan.models.caches import (
    ChunkedCache,
    FullCache,
    IndexerCache,
    LatentCache,
    LayerCache,
    RecurrentCache,
    SharedCache,
    StateTensor,
)
from kvplan.models.spec import Layer, ModelSpec

ADA, HOPPER, BLACKWELL = (8, 9), (9, 0), (10, 0)
MLA = LatentCache(latent_dim=512, rope_dim=64)
INDEXER = IndexerCache(head_dim=128)
# 1,000 elements of two bytes, which no rank splits.
STATE = RecurrentCache(states=(StateTensor(name="linear", shape=(10, 10, 10), split=None),))


def context(
    kv_dtype: str = "auto",
    *,
    version: str = "0.33.0",
    mode: Mode = "align",
    asked_block: int | None = None,
    skipped: tuple[str, ...] = (),
    lookahead: int = 0,
    drafts: int = 0,
    **changes: Any,
) -> LayerContext:
    cell: CellContext = test_cells.context(kv_dtype, **changes)
    return LayerContext(
        cell=cell,
        state=StateContext(
            architecture=cell.architecture,
            dtype=cell.dtype,
            tp=cell.tp,
            sm=cell.sm,
            rules=rules_for(version),
            mode=mode,
            draft_tokens=drafts,
        ),
        asked_block=asked_block,
        skipped=frozenset(skipped),
        max_length=5000,
        lookahead=lookahead,
    )


def pages(model: ModelSpec, kv_dtype: str = "auto", **changes: Any) -> list[PageSpec]:
    """The pages of all layers in a row."""
    found = layer_pages(model.layers, context(kv_dtype, **changes))
    assert len(found) == len(model.layers)
    return [page for layer in found for page in layer]


def page(cache: LayerCache, kv_dtype: str = "auto", **changes: Any) -> PageSpec:
    (only,) = pages(toy(cache), kv_dtype, **changes)
    return only


@pytest.mark.parametrize(
    ("kv_dtype", "changes", "block", "token"),
    [
        ("auto", {}, 16, 4096),
        ("auto", {"asked_block": 64}, 64, 4096),
        ("auto", {"tp": 4}, 16, 1024),
        ("fp8", {}, 16, 2048),
        ("int4_per_token_head", {}, 16, 8 * 136),
    ],
)
def test_a_page_is_a_block_of_tokens(
    kv_dtype: str, changes: dict[str, Any], block: int, token: int
) -> None:
    chunk = ChunkedCache(kv_heads=8, head_dim=128, head_dim_v=128, chunk=8192)
    for cache, kind, span in ((full(), "full", 0), (window(1000), "window", 1000),
                              (chunk, "chunked", 8192)):  # fmt: skip
        found = page(cache, kv_dtype, **changes)
        assert (found.kind, found.span) == (kind, span)
        assert (found.block_size, found.page_bytes) == (block, block * token)
        assert (found.padding, found.held, found.extra) == (0, None, 0)


@pytest.mark.parametrize(
    ("kv_dtype", "sm", "block", "token"),
    [("auto", HOPPER, 16, 1152), ("fp8", HOPPER, 64, 576), ("auto", BLACKWELL, 32, 1152)],
)
def test_a_page_of_latent_attention(
    kv_dtype: str, sm: tuple[int, int], block: int, token: int
) -> None:
    assert page(MLA, kv_dtype, sm=sm, tp=8) == PageSpec("latent", block, block * token)


def test_a_sparse_layer_has_two_pages() -> None:
    model = toy(MLA, layers=(Layer(caches=(INDEXER, MLA)),))
    assert layer_pages(model.layers, context("fp8", sparse=True)) == (
        (PageSpec("indexer", 64, 64 * 132), PageSpec("latent", 64, 64 * 656)),
    )


def test_layers_keep_their_order_and_shared_ones_have_no_page() -> None:
    model = toy(full(), window(10), SharedCache(layer=0), None, full(), window(10))
    kinds = [[spec.kind for spec in layer] for layer in layer_pages(model.layers, context())]
    assert kinds == [["full"], ["window"], [], [], ["full"], ["window"]]


def test_a_latent_vector_is_unpacked_where_vllm_has_no_kernel() -> None:
    unpacked = FullCache(kv_heads=40, head_dim=96, head_dim_v=96)
    latent = LatentCache(latent_dim=256, rope_dim=32, unpacked=unpacked)
    found = page(latent, architecture="MiniCPM3ForCausalLM")
    assert (found.kind, found.page_bytes) == ("full", 16 * 40 * 192 * 2)
    assert page(latent) == PageSpec("latent", 16, 16 * 2 * 288)


@pytest.mark.parametrize(("version", "token"), [("0.7.0", 1152), ("0.7.1", 1280), ("0.8.5", 1152)])
def test_v0_rounded_tokens_of_a_latent_cache_up(version: str, token: int) -> None:
    """1,152 bytes are 4.5 times 256."""
    assert page(MLA, version=version) == PageSpec("latent", 16, 16 * token)
    assert page(full(1, 72), version=version).page_bytes == 16 * 288


@pytest.mark.parametrize(
    ("version", "whole", "windowed"),
    [("0.13.0", 384, 384), ("0.14.0", 320, 384), ("0.19.1", 320, 384), ("0.20.0", 320, 320)],
)
def test_releases_that_take_a_value_to_be_as_long_as_its_key(
    version: str, whole: int, windowed: int
) -> None:
    """Keys of 192 and values of 128 elements."""
    assert page(full(4, 192, 128), version=version).page_bytes == 16 * 4 * whole * 2
    assert page(window(128, 4, 192, 128), version=version).page_bytes == 16 * 4 * windowed * 2
    assert page(full(4, 128, 128), version=version).page_bytes == 16 * 4 * 256 * 2


def test_windows_keep_more_for_drafts_of_several_modules() -> None:
    found = pages(toy(full(), window(10)), lookahead=2)
    assert [spec.extra for spec in found] == [0, 2]


# Qwen3-Next, one H100: a state of 1,097,728 bytes, attention of 2,048 a token.
@pytest.mark.parametrize(
    ("changes", "block", "held"),
    [
        ({}, 576, 3),
        ({"version": "0.32.0"}, 544, 2),
        ({"sm": ADA}, 544, 2),
        ({"mode": "none"}, 544, 1),  # nothing to align checkpoints to
        ({"asked_block": 1024}, 1024, 3),
    ],
)
def test_a_state_is_padded_to_a_page_of_attention(
    changes: dict[str, Any], block: int, held: int
) -> None:
    found = pages(real("qwen3-next-80b-a3b"), **changes)
    assert len(found) == 48
    attention, state = (next(p for p in found if p.kind == k) for k in ("full", "recurrent"))
    assert (attention.block_size, attention.page_bytes) == (block, block * 2048)
    assert (state.page_bytes, state.padding) == (block * 2048, block * 2048 - 1_097_728)
    assert state.block_size == (5000 if changes.get("mode") == "none" else block)
    assert state.held == held
    assert [p.kind for p in found[:4]] == ["recurrent"] * 3 + ["full"]


def test_drafts_take_states_and_longer_inputs() -> None:
    plain, drafting = (
        page(RecurrentCache(states=(StateTensor(name="conv", shape=(100, 3)),)), drafts=n)
        for n in (0, 2)
    )
    assert (plain.page_bytes, plain.held) == (100 * 3 * 2, 2)
    assert (drafting.page_bytes, drafting.held) == (100 * 5 * 2, 4)


def test_states_whose_blocks_follow_the_length_hold_one_more_for_each_draft() -> None:
    found = page(STATE, version="0.31.0", mode="all", drafts=3)
    assert (found.held, found.extra, found.block_size) == (None, 3, 16)
    assert page(STATE, drafts=3).extra == 0


def test_states_alone_have_their_own_page() -> None:
    """2,000 bytes, and blocks of 16 tokens, or as asked, or of the whole length."""
    assert page(STATE) == PageSpec("recurrent", 16, 2000, held=2)
    assert page(STATE, asked_block=64) == PageSpec("recurrent", 64, 2000, held=2)
    assert page(STATE, mode="none") == PageSpec("recurrent", 5000, 2000, held=1)


def test_the_largest_state_decides_and_all_are_padded_to_one_page() -> None:
    """2,000 and 600 bytes beside 64 a token: 2 × 16 tokens are 2,048."""
    small = RecurrentCache(states=(StateTensor(name="conv", shape=(100, 3)),))
    found = pages(toy(STATE, small, full(1, 16)))
    assert [(p.page_bytes, p.padding) for p in found] == [(2048, 48), (2048, 1448), (2048, 0)]


# Layers 0 and 3 of four stay in bf16: 4,096 bytes a token beside 2,048.
def test_layers_that_are_left_out_of_quantization() -> None:
    found = pages(toy(*[full()] * 4), "fp8", skipped=("0", "3"))
    assert [p.block_size for p in found] == [32] * 4
    assert [p.page_bytes for p in found] == [131_072, 65_536, 65_536, 131_072]


def test_windows_that_are_left_out_are_padded_to_the_page_of_the_rest() -> None:
    """FP4 takes 1,152 bytes a token: 64 of them cover 16 of 4,096, which leaves 8,192 over."""
    found = pages(toy(full(), window(100)), "nvfp4", sm=BLACKWELL, skipped=("sliding_window",))
    assert found[0] == PageSpec("full", 64, 73_728, sides=Sides(8, 576, 576))
    assert found[1] == PageSpec("window", 16, 73_728, 100, Sides(8, 2048, 2048), padding=8192)
    # In 8 bits 32 tokens are exactly 16 of the windows'.
    found = pages(toy(full(), window(100)), "fp8", skipped=("sliding_window",))
    assert [(p.block_size, p.page_bytes, p.padding) for p in found] == [
        (32, 65_536, 0), (16, 65_536, 0)
    ]  # fmt: skip


def test_a_name_of_layers_leaves_out_none_but_windows() -> None:
    assert pages(toy(full()), "fp8", skipped=("sliding_window",)) == pages(toy(full()), "fp8")
    both = pages(toy(full(), window(9)), "fp8", skipped=("1",))
    assert [p.page_bytes for p in both] == [65_536, 65_536]


def test_states_grow_with_the_page_that_layers_left_out_need() -> None:
    """TurboQuant's 196 bytes and bf16's 512 a token meet at 25,088: 16 tokens cover a state.

    Then 16 × 25,088 = 401,408 bytes have to be covered by 196 a token: 128 × 16.
    """
    model = toy(full(1), STATE, full(1))
    found = pages(model, "turboquant_k8v4", skipped=("2",))
    assert [(p.kind, p.block_size, p.page_bytes) for p in found] == [
        ("full", 2048, 401_408), ("recurrent", 2048, 401_408), ("full", 2048, 1_048_576)
    ]  # fmt: skip
    assert found[1].padding == 401_408 - 2000


def test_a_state_is_padded_again_where_the_block_grows() -> None:
    """16 tokens of 256 bytes cover 2,000; 16 left out of 512 need 8,192, so 32."""
    found = pages(toy(full(1), STATE, full(1)), "fp8", skipped=("2",))
    assert [(p.block_size, p.page_bytes, p.padding) for p in found] == [
        (32, 8192, 0), (32, 8192, 6192), (32, 16_384, 0)
    ]  # fmt: skip


def test_states_are_covered_by_the_layers_that_are_not_left_out() -> None:
    """Qwen3-Next in 8 bits: 1,097,728 bytes by 1,024 a token are 17 steps of 64."""
    found = pages(real("qwen3-next-80b-a3b"), "fp8", skipped=("3",))
    assert {(p.kind, p.block_size, p.page_bytes) for p in found} == {
        ("recurrent", 1088, 1088 * 1024), ("full", 1088, 1088 * 1024), ("full", 1088, 1088 * 2048)
    }  # fmt: skip
    assert next(p.page_bytes for p in found if p.kind == "full") == 1088 * 2048


def test_wide_heads_in_8_bits_make_every_block_longer() -> None:
    """Gemma 4 in 8 bits on Hopper: heads of 512 take 64 tokens, and so do the windows'."""
    found = pages(toy(full(2, 512), window(1024, 8, 256)), "fp8")
    assert [(p.block_size, p.page_bytes) for p in found] == [(64, 64 * 2048), (64, 64 * 4096)]


def test_windows_take_the_largest_block_that_their_kernels_run() -> None:
    """FlashInfer in 8 bits on Ada runs 16, 32 and 64 tokens; asked for 256."""
    found = pages(toy(full(), window(100)), "fp8", sm=ADA, asked_block=256)
    assert [(p.block_size, p.page_bytes) for p in found] == [(256, 256 * 2048), (64, 64 * 2048)]
    assert page(window(100), asked_block=256).block_size == 256


@pytest.mark.parametrize(
    ("cache", "changes", "error", "message"),
    [
        (window(9), {"kv_dtype": "turboquant_k8v4"}, EngineRefusesError, "no TurboQuant backend"),
        (MLA, {"kv_dtype": "nvfp4"}, EngineRefusesError, "no MLA backend"),
        (full(), {"asked_block": 24}, EngineRefusesError, "multiples of 16"),
        (
            RecurrentCache(states=(StateTensor(name="shift", shape=(1, 64)),)),
            {},
            NotModelledError,
            "no layer for RWKV",
        ),
    ],
)
def test_what_no_layer_or_backend_takes_is_refused(
    cache: LayerCache, changes: dict[str, Any], error: type[Exception], message: str
) -> None:
    kv_dtype = changes.pop("kv_dtype", "auto")
    with pytest.raises(error, match=message) as raised:
        page(cache, kv_dtype, **changes)
    assert getattr(raised.value, "hint", None)


@pytest.mark.parametrize(
    ("heads", "per_layer", "tp", "fine"),
    [
        (32, 8, 1, True),
        (32, 8, 8, True),
        (32, 8, 16, True),  # replicated twice
        (32, 8, 32, True),
        (32, 8, 3, False),
        (40, 10, 2, True),
        (40, 10, 4, False),  # phi-4
        (40, 10, 8, False),
        (40, 10, 5, True),
        (40, 10, 20, True),
        (71, 1, 2, False),
        (71, 1, 71, True),
        (24, 8, 6, False),
    ],
)
def test_heads_must_divide(heads: int, per_layer: int, tp: int, *, fine: bool) -> None:
    model = toy(full(per_layer), attention_heads=heads)
    if fine:
        check_heads(model, tp)
        return
    with pytest.raises(EngineRefusesError, match=f"vLLM refuses --tp {tp}: ") as raised:
        check_heads(model, tp)
    assert raised.value.hint is not None
    assert raised.value.hint.startswith("Use --tp 1")


def test_the_refusal_says_which_heads_and_what_would_do() -> None:
    with pytest.raises(EngineRefusesError, match="32 attention heads do not divide") as raised:
        check_heads(toy(full(8)), 3)
    assert raised.value.hint == "Use --tp 1 or 2 or 4 or 8 or 16."
    with pytest.raises(EngineRefusesError, match="divides the 10 KV heads nor is") as raised:
        check_heads(real("phi-4"), 4)
    assert raised.value.hint == "Use --tp 1 or 2."


def test_every_layers_heads_count_and_latent_ones_have_none() -> None:
    with pytest.raises(EngineRefusesError, match="the 12 KV heads"):
        check_heads(toy(full(8), window(10, 12)), 8)
    check_heads(toy(MLA), 32)
    assert kv_heads(toy(full(8), window(10, 12), MLA)) == {8, 12}
    assert kv_heads(toy(MLA)) == set()


@pytest.mark.parametrize("name", ["llama-3.1-8b", "gemma-3-27b", "deepseek-v3", "gpt-oss-20b"])
def test_real_models_have_a_page_a_layer(name: str) -> None:
    model = real(name)
    assert not ignores_kv_dtype(model)
    found = layer_pages(model.layers, context())
    assert [len(layer) for layer in found] == [1] * len(model.layers)
