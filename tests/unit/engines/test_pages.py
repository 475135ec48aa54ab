"""Layer caches → vLLM's pages; heads that divide; blocks one request holds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from real_models import full, real, toy, window

from kvplan.engines.vllm.history import rules_for
from kvplan.engines.vllm.kv_dtypes import resolve
from kvplan.engines.vllm.pages import (
    Kind,
    PageContext,
    PageSpec,
    blocks_held,
    check_heads,
    kv_heads,
    layer_pages,
    still_grows,
)
from kvplan.errors import EngineRefusesError, NotModelledError
from kvplan.models.caches import (
    ChunkedCache,
    CrossCache,
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


def context(kv_dtype: str = "auto", **changes: Any) -> PageContext:
    name, kv = resolve(kv_dtype, "bfloat16", None)
    plain = PageContext(
        kv_dtype=name,
        kv=kv,
        tp=1,
        dcp=1,
        sm=HOPPER,
        block_size=None,
        dtype="bfloat16",
        rules=rules_for("0.33.0"),
        kept_whole=False,
    )
    return replace(plain, **changes)


def page(cache: LayerCache, kv_dtype: str = "auto", **changes: Any) -> PageSpec:
    ((only,),) = layer_pages(toy(cache), context(kv_dtype, **changes))
    return only


# A page of regular attention: block × KV heads of the rank × (keys + values) × bytes an element.
@pytest.mark.parametrize(
    ("kv_dtype", "changes", "block", "size"),
    [
        ("auto", {}, 16, 16 * 8 * 256 * 2),
        ("auto", {"block_size": 64}, 64, 64 * 8 * 256 * 2),
        ("auto", {"tp": 4}, 16, 16 * 2 * 256 * 2),
        ("auto", {"tp": 8}, 16, 16 * 1 * 256 * 2),
        ("auto", {"tp": 32}, 16, 16 * 1 * 256 * 2),  # replicated, not split
        ("fp8", {}, 16, 16 * 8 * 256),
        ("fp8", {"sm": ADA}, 16, 16 * 8 * 256),
        ("int8_per_token_head", {}, 16, 16 * 8 * (256 + 8)),
        ("int4_per_token_head", {}, 16, 16 * 8 * (128 + 8)),
        ("nvfp4", {"sm": BLACKWELL}, 16, 16 * 8 * (128 + 16)),
    ],
)
def test_a_page_of_regular_attention(
    kv_dtype: str, changes: dict[str, Any], block: int, size: int
) -> None:
    assert page(full(), kv_dtype, **changes) == PageSpec("full", block, size)
    assert page(window(1000), kv_dtype, **changes) == PageSpec("window", block, size, 1000)
    chunk = ChunkedCache(kv_heads=8, head_dim=128, head_dim_v=128, chunk=8192)
    assert page(chunk, kv_dtype, **changes) == PageSpec("chunked", block, size, 8192)


# A latent page has one vector a token, however many ranks there are.
@pytest.mark.parametrize(
    ("kv_dtype", "sm", "block", "cell"),
    [
        ("auto", HOPPER, 16, 1152),
        ("fp8", HOPPER, 64, 576),
        ("auto", BLACKWELL, 32, 1152),
        ("fp8", BLACKWELL, 32, 576),
        ("auto", ADA, 16, 1152),
    ],
)
@pytest.mark.parametrize("tp", [1, 8])
def test_a_page_of_latent_attention(
    kv_dtype: str, sm: tuple[int, int], block: int, cell: int, tp: int
) -> None:
    assert page(MLA, kv_dtype, sm=sm, tp=tp) == PageSpec("latent", block, block * cell)


@pytest.mark.parametrize(
    ("kv_dtype", "sm", "cell"),
    [
        ("auto", HOPPER, 1152),
        ("fp8", HOPPER, 656),
        ("auto", BLACKWELL, 1152),
        ("fp8", BLACKWELL, 576),
    ],
)
def test_sparse_latent_attention_has_an_indexer_beside_it(
    kv_dtype: str, sm: tuple[int, int], cell: int
) -> None:
    model = toy(MLA, layers=(Layer(caches=(INDEXER, MLA)),))
    assert layer_pages(model, context(kv_dtype, sm=sm)) == (
        (PageSpec("indexer", 64, 64 * 132), PageSpec("latent", 64, 64 * cell)),
    )


def test_ranks_share_sparse_latent_requests_on_hopper_only_in_8_bits() -> None:
    model = toy(MLA, layers=(Layer(caches=(INDEXER, MLA)),))
    with pytest.raises(EngineRefusesError, match="sparse MLA with a cache that is not fp8") as it:
        layer_pages(model, context(dcp=2))
    assert it.value.hint == "Use --kv-dtype fp8, or leave out --dcp."
    for fine in (context("fp8", dcp=2), context(dcp=1), context(dcp=2, sm=BLACKWELL)):
        assert layer_pages(model, fine)[0][1].block_size == 64
    assert page(MLA, dcp=2) == page(MLA)


def test_a_latent_layer_without_an_indexer_is_not_sparse() -> None:
    assert page(MLA, "fp8").page_bytes == 64 * 576 != 64 * 656


@pytest.mark.parametrize(
    ("architecture", "kind", "cell"),
    [("MiniCPM3ForCausalLM", "full", 2 * 2 * 40 * 96), ("Other", "latent", 2 * 288)],
)
def test_a_latent_vector_is_unpacked_where_vllm_has_no_kernel(
    architecture: str, kind: str, cell: int
) -> None:
    unpacked = FullCache(kv_heads=40, head_dim=96, head_dim_v=96)
    latent = LatentCache(latent_dim=256, rope_dim=32, unpacked=unpacked)
    ((spec,),) = layer_pages(toy(latent, architecture=architecture), context())
    assert (spec.kind, spec.page_bytes) == (kind, spec.block_size * cell)


def test_layers_keep_their_order_and_shared_ones_have_no_page() -> None:
    shared = SharedCache(layer=0)
    model = toy(full(), window(10), shared, None, full(), window(10))
    kinds = [[spec.kind for spec in layer] for layer in layer_pages(model, context())]
    assert kinds == [["full"], ["window"], [], [], ["full"], ["window"]]


@pytest.mark.parametrize(
    "cache",
    [
        RecurrentCache(states=(StateTensor(name="ssm", shape=(4, 4)),)),
        CrossCache(kv_heads=8, head_dim=64, head_dim_v=64, source_tokens=1500),
    ],
)
def test_caches_that_are_not_modelled_are_refused_by_name(cache: LayerCache) -> None:
    with pytest.raises(NotModelledError, match=f"paging of {cache.kind} caches") as raised:
        page(cache)
    assert raised.value.hint == "Full, window, chunked and latent attention are modelled."


@pytest.mark.parametrize(("architecture", "span"), [("Cohere2ForCausalLM", 4097), ("Other", 4096)])
def test_cohere2_asks_for_one_more_token(architecture: str, span: int) -> None:
    model = toy(window(4096), architecture=architecture)
    assert layer_pages(model, context())[0][0].span == span


@pytest.mark.parametrize("kv_dtype", ["fp8", "fp8_e5m2", "int8_per_token_head"])
@pytest.mark.parametrize("sm", [ADA, HOPPER, BLACKWELL])
def test_falcon_ignores_the_cache_type(kv_dtype: str, sm: tuple[int, int]) -> None:
    model = real("falcon-7b")
    assert model.architecture == "FalconForCausalLM"
    asked = layer_pages(model, context(kv_dtype, sm=sm))
    assert asked == layer_pages(model, context("auto", sm=sm))
    other = model.model_copy(update={"architecture": "LlamaForCausalLM"})
    assert layer_pages(other, context(kv_dtype, sm=sm)) != asked


# Keys of 192 and values of 128, as in no model that kvplan reads yet.
@pytest.mark.parametrize(
    ("version", "kept_whole", "whole", "windowed"),
    [
        ("0.13.0", False, 384, 384),
        ("0.14.0", False, 320, 384),
        ("0.19.1", False, 320, 384),
        ("0.20.0", False, 320, 320),
        ("0.20.0", True, 320, 384),
        ("0.21.0", True, 320, 320),
        ("0.33.0", False, 320, 320),
    ],
)
def test_releases_that_take_a_value_to_be_as_long_as_its_key(
    version: str, *, kept_whole: bool, whole: int, windowed: int
) -> None:
    changes = {"rules": rules_for(version), "kept_whole": kept_whole}
    assert page(full(4, 192, 128), **changes).page_bytes == 16 * 4 * whole * 2
    assert page(window(128, 4, 192, 128), **changes).page_bytes == 16 * 4 * windowed * 2
    assert page(full(4, 128, 128), **changes).page_bytes == 16 * 4 * 256 * 2


def test_unequal_keys_and_values_have_no_8_bit_backend_on_blackwell() -> None:
    with pytest.raises(EngineRefusesError, match="no fp8 backend for unequal") as raised:
        page(full(4, 192, 128), "fp8", sm=BLACKWELL)
    assert raised.value.hint == "Use --kv-dtype auto."
    assert page(full(4, 192, 128), "fp8").page_bytes == 16 * 4 * 320
    assert page(full(4, 192, 128), sm=BLACKWELL).page_bytes == 16 * 4 * 640
    assert page(full(4, 128, 128), "fp8", sm=BLACKWELL).page_bytes == 16 * 4 * 256


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


# Blocks of one request: hand-computed.
@pytest.mark.parametrize(
    ("spec", "length", "in_flight", "dcp", "blocks"),
    [
        (PageSpec("full", 16, 1), 1, 0, 1, 1),
        (PageSpec("full", 16, 1), 16, 0, 1, 1),
        (PageSpec("full", 16, 1), 17, 0, 1, 2),
        (PageSpec("full", 16, 1), 17, 999, 1, 2),
        (PageSpec("latent", 64, 1), 65, 0, 1, 2),
        (PageSpec("indexer", 64, 1), 64, 0, 1, 1),
        (PageSpec("full", 16, 1), 128, 0, 8, 1),
        (PageSpec("full", 16, 1), 129, 0, 8, 2),
        (PageSpec("latent", 16, 1), 1000, 0, 8, 8),  # ceil(125 / 16)
        # min(window - 1 + in flight, length), rounded up, and one more
        (PageSpec("window", 16, 1, 1024), 100_000, 8192, 1, 577),
        (PageSpec("window", 16, 1, 1024), 100_000, 8193, 1, 577),
        (PageSpec("window", 16, 1, 1024), 100_000, 8194, 1, 578),
        (PageSpec("window", 16, 1, 1024), 32, 8192, 1, 3),
        (PageSpec("window", 16, 1, 1024), 33, 8192, 1, 4),
        (PageSpec("window", 16, 1, 128), 100_000, 0, 8, 9),  # windows are not shared by ranks
        (PageSpec("chunked", 16, 1, 8192), 100_000, 8192, 1, 1024),
        (PageSpec("chunked", 16, 1, 8192), 100_000, 8193, 1, 1025),
        (PageSpec("chunked", 16, 1, 8192), 33, 8192, 1, 3),
    ],
)
def test_blocks_of_one_request(
    spec: PageSpec, length: int, in_flight: int, dcp: int, blocks: int
) -> None:
    assert blocks_held(spec, length, in_flight=in_flight, dcp=dcp) == blocks


SPECS = st.builds(
    PageSpec,
    st.sampled_from(["full", "latent", "indexer", "window", "chunked"]),
    st.integers(1, 256),
    st.just(1),
    st.integers(1, 10_000),
)


@pytest.mark.parametrize(
    ("kind", "length", "grows"),
    [
        ("full", 10**9, True),
        ("latent", 10**9, True),
        ("indexer", 10**9, True),
        ("window", 1098, True),  # keeps 1,000 - 1 + 100 tokens
        ("window", 1099, False),
        ("chunked", 1099, True),  # keeps 1,000 + 100
        ("chunked", 1100, False),
    ],
)
def test_windows_and_chunks_stop_growing(kind: Kind, length: int, *, grows: bool) -> None:
    assert still_grows(PageSpec(kind, 16, 1, 1000), length, in_flight=100) is grows


def test_a_layer_that_keeps_everything_has_no_span() -> None:
    assert page(full()).span == page(MLA).span == 0


@given(SPECS, st.integers(1, 10**6), st.integers(1, 100_000))
def test_a_request_grows_as_long_as_it_is_said_to(
    spec: PageSpec, length: int, in_flight: int
) -> None:
    now = blocks_held(spec, length, in_flight=in_flight, dcp=1)
    ever = blocks_held(spec, 10**9, in_flight=in_flight, dcp=1)
    if not still_grows(spec, length, in_flight=in_flight):
        assert ever == now
    # A window of one token less than it keeps is still growing, at the last length that is.
    last = {"window": spec.span - 1 + in_flight, "chunked": spec.span + in_flight}.get(spec.kind)
    assert still_grows(spec, length, in_flight=in_flight) is (last is None or length < last)


@pytest.mark.parametrize("name", ["llama-3.1-8b", "gemma-3-27b", "deepseek-v3", "gpt-oss-20b"])
def test_real_models_have_a_page_a_layer(name: str) -> None:
    model: ModelSpec = real(name)
    pages = layer_pages(model, context())
    assert [len(layer) for layer in pages] == [1] * len(model.layers)
