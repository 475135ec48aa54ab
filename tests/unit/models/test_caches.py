"""What each kind of cache holds, against numbers worked out by hand."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from kvplan.models.caches import (
    ChunkedCache,
    CompressedCache,
    CompressorCache,
    CrossCache,
    FullCache,
    IndexerCache,
    LatentCache,
    LayerCache,
    RecurrentCache,
    SharedCache,
    StateTensor,
    WindowCache,
)
from kvplan.models.formats import FP8_KV, Dtype, KvFormat, plain_kv

BF16 = plain_kv("bfloat16")
FP32 = plain_kv("float32")
PER_TOKEN_HEAD = KvFormat(
    name="int8_per_token_head", bits_k=8, bits_v=8, scale_bytes_k=4, scale_bytes_v=4, source="test"
)

FULL = FullCache(kv_heads=8, head_dim=128, head_dim_v=128)
WINDOW = WindowCache(kv_heads=8, head_dim=128, head_dim_v=128, window=4096)
CHUNKED = ChunkedCache(kv_heads=8, head_dim=128, head_dim_v=128, chunk=8192)
LATENT = LatentCache(latent_dim=512, rope_dim=64)
COMPRESSED = CompressedCache(latent_dim=512, rope_dim=64, cell_bytes=584, stride=4)
SLIDING = CompressedCache(latent_dim=512, rope_dim=64, cell_bytes=584, window=128)
COMPRESSOR = CompressorCache(state_dim=2_048, window=8)
INDEXER = IndexerCache(head_dim=128)
RECURRENT = RecurrentCache(
    states=(
        StateTensor(name="conv", shape=(8192, 3)),
        StateTensor(name="ssm", shape=(32, 128, 128), dtype="float32"),
    )
)
CROSS = CrossCache(kv_heads=20, head_dim=64, head_dim_v=64, source_tokens=1500)
SHARED = SharedCache(layer=14)
EVERY_KIND: tuple[LayerCache, ...] = (
    FULL, WINDOW, CHUNKED, LATENT, COMPRESSED, COMPRESSOR, INDEXER, RECURRENT, CROSS, SHARED,
)  # fmt: skip


def kinds(cache: LayerCache) -> str:
    return cache.kind


# ---------------------------------------------------------------- by hand


def test_full_attention_by_hand() -> None:
    # 8 heads x (128 + 128) elements x 2 bytes = 4,096 bytes a token.
    assert FULL.token_bytes(BF16, tp=1) == 4_096
    assert FULL.request_bytes(32_768, BF16, "bfloat16", tp=1) == 134_217_728
    assert FULL.request_bytes(1, BF16, "bfloat16", tp=1) == 4_096
    assert FULL.token_bytes(FP8_KV, tp=1) == 2_048
    assert FULL.token_bytes(FP32, tp=1) == 8_192
    assert FULL.fixed_bytes("bfloat16", tp=1) == 0


@pytest.mark.parametrize(
    ("tp", "heads", "bytes_per_token"),
    [(1, 8, 4_096), (2, 4, 2_048), (4, 2, 1_024), (8, 1, 512), (16, 1, 512), (64, 1, 512)],
)
def test_heads_are_split_over_ranks_and_then_replicated(
    tp: int, heads: int, bytes_per_token: int
) -> None:
    assert FULL.heads_per_rank(tp) == heads
    assert FULL.token_bytes(BF16, tp=tp) == bytes_per_token


def test_the_fullest_rank_takes_the_odd_head() -> None:
    assert FullCache(kv_heads=10, head_dim=128, head_dim_v=128).heads_per_rank(4) == 3


def test_keys_and_values_may_differ_in_width() -> None:
    # MiMo-like: keys of 192 and values of 128 elements: 4 x 320 x 2.
    cache = FullCache(kv_heads=4, head_dim=192, head_dim_v=128)
    assert cache.token_bytes(BF16, tp=1) == 2_560
    assert cache.token_bytes(PER_TOKEN_HEAD, tp=1) == 4 * (192 + 128 + 8)


@pytest.mark.parametrize(
    ("context", "held"),
    [(0, 0), (1, 1), (4_095, 4_095), (4_096, 4_096), (4_097, 4_096), (10**6, 4_096)],
)
def test_a_window_stops_growing(context: int, held: int) -> None:
    assert WINDOW.tokens_held(context) == held
    assert WINDOW.request_bytes(context, BF16, "bfloat16", tp=2) == held * 2_048


@pytest.mark.parametrize(("context", "held"), [(1, 1), (8_192, 8_192), (8_193, 8_192)])
def test_a_chunk_is_held_to_its_length(context: int, held: int) -> None:
    assert CHUNKED.tokens_held(context) == held
    assert CHUNKED.request_bytes(context, FP8_KV, "bfloat16", tp=1) == held * 2_048


@pytest.mark.parametrize("tp", [1, 2, 8, 128])
def test_a_latent_vector_is_never_split(tp: int) -> None:
    # DeepSeek-V3: one vector of 512 + 64 elements a token, whatever the ranks.
    assert LATENT.token_bytes(BF16, tp=tp) == 1_152
    assert LATENT.token_bytes(FP8_KV, tp=tp) == 576
    assert LATENT.request_bytes(1_000, BF16, "bfloat16", tp=tp) == 1_152_000


def test_a_latent_vector_may_lack_a_rotary_part() -> None:
    assert LatentCache(latent_dim=512, rope_dim=0).token_bytes(BF16, tp=1) == 1_024


@pytest.mark.parametrize("tp", [1, 8])
@pytest.mark.parametrize("kv", [BF16, FP8_KV, FP32])
def test_an_indexer_keeps_8_bit_keys_whatever_the_cache_type(tp: int, kv: KvFormat) -> None:
    # 128 one-byte elements and one fp32 scale for each 128 of them.
    assert INDEXER.token_bytes(kv, tp=tp) == 132
    assert IndexerCache(head_dim=256).token_bytes(kv, tp=tp) == 264
    assert IndexerCache(head_dim=128, scale_block=32).token_bytes(kv, tp=tp) == 144
    assert INDEXER.request_bytes(1_000, kv, "bfloat16", tp=tp) == 132_000


@pytest.mark.parametrize("tp", [1, 8])
@pytest.mark.parametrize("kv", [BF16, FP8_KV])
def test_compressed_vectors_stand_for_several_tokens(tp: int, kv: KvFormat) -> None:
    # One vector of 584 bytes for every 4 complete tokens, whatever the cache type.
    assert COMPRESSED.token_bytes(kv, tp=tp) == 584
    assert [COMPRESSED.tokens_held(context) for context in (0, 3, 4, 7, 8)] == [0, 0, 1, 1, 2]
    assert COMPRESSED.request_bytes(1_000_003, kv, "bfloat16", tp=tp) == 250_000 * 584


def test_compressed_vectors_may_be_kept_for_a_window_only() -> None:
    assert [SLIDING.tokens_held(context) for context in (1, 127, 128, 129)] == [1, 127, 128, 128]
    assert SLIDING.request_bytes(10**6, BF16, "bfloat16", tp=4) == 128 * 584
    both = COMPRESSED.model_copy(update={"window": 130})
    assert both.tokens_held(10**6) == 32
    assert type(both.tokens_held(10**6)) is int


@pytest.mark.parametrize("tp", [1, 8])
def test_a_compressor_keeps_fp32_states_of_a_few_tokens(tp: int) -> None:
    # 2,048 fp32 values for each of the last 8 tokens.
    assert COMPRESSOR.token_bytes(FP8_KV, tp=tp) == 8_192
    assert [COMPRESSOR.tokens_held(context) for context in (1, 7, 8, 9)] == [1, 7, 8, 8]
    assert COMPRESSOR.request_bytes(10**6, FP8_KV, "float16", tp=tp) == 65_536


def test_an_indexer_may_keep_a_key_for_several_tokens() -> None:
    strided = IndexerCache(head_dim=128, stride=4)
    assert [strided.tokens_held(context) for context in (3, 4, 1_003)] == [0, 1, 250]
    assert strided.request_bytes(1_003, BF16, "bfloat16", tp=1) == 250 * 132
    assert type(strided.request_bytes(1_003, BF16, "bfloat16", tp=1)) is int
    assert INDEXER.tokens_held(1_003) == 1_003


def test_an_indexer_may_keep_wider_keys_without_scales() -> None:
    wide = IndexerCache(head_dim=128, scale_block=None, element_bytes=2)
    assert wide.token_bytes(FP8_KV, tp=4) == 256
    assert IndexerCache(head_dim=128, element_bytes=2).token_bytes(BF16, tp=1) == 260


def test_a_latent_cache_is_its_vector_whatever_it_would_be_unpacked() -> None:
    either = LATENT.model_copy(update={"unpacked": FULL})
    assert either.token_bytes(BF16, tp=2) == 1_152
    assert either.unpacked == FULL


def test_an_indexers_cut_block_has_no_scale() -> None:
    # As the field's own formula has it: 4 * (head_dim // scale_block).
    assert IndexerCache(head_dim=200).token_bytes(BF16, tp=1) == 204
    assert IndexerCache(head_dim=127).token_bytes(BF16, tp=1) == 127


@pytest.mark.parametrize("kv", [BF16, FP8_KV])
def test_an_indexer_may_keep_plain_16_bit_keys(kv: KvFormat) -> None:
    plain = IndexerCache(head_dim=128, scale_block=None, element_bytes=2)
    assert plain.token_bytes(kv, tp=4) == 256
    assert IndexerCache(head_dim=128, element_bytes=2).token_bytes(kv, tp=4) == 260


def test_a_recurrent_state_by_hand() -> None:
    # conv 8192 x 3 elements in the model's type, ssm 32 x 128 x 128 in fp32.
    assert RECURRENT.fixed_bytes("bfloat16", tp=1) == 49_152 + 2_097_152
    assert RECURRENT.fixed_bytes("float32", tp=1) == 98_304 + 2_097_152
    assert RECURRENT.fixed_bytes("bfloat16", tp=4) == 12_288 + 524_288
    assert RECURRENT.fixed_bytes("bfloat16", tp=64) == 128 * 3 * 2 + 128 * 128 * 4
    assert RECURRENT.token_bytes(BF16, tp=1) == 0


@pytest.mark.parametrize("context", [1, 4_096, 10**6])
def test_a_recurrent_state_never_grows(context: int) -> None:
    assert RECURRENT.tokens_held(context) == 0
    assert RECURRENT.request_bytes(context, BF16, "bfloat16", tp=1) == 2_146_304


def test_a_state_does_not_change_or_take_unknown_fields() -> None:
    state = StateTensor(name="ssm", shape=(4, 4))
    with pytest.raises(ValidationError):
        state.name = "conv"
    with pytest.raises(ValidationError):
        StateTensor.model_validate(state.model_dump() | {"surprise": 1})


def test_a_state_is_split_along_the_dimension_it_names() -> None:
    state = StateTensor(name="conv", shape=(3, 8_192), split=1)
    assert state.size("bfloat16", tp=4) == 3 * 2_048 * 2
    assert StateTensor(name="conv", shape=(3, 8_192), split=None).size("float16", tp=4) == 49_152
    assert StateTensor(name="ssm", shape=(10, 4)).size("float32", tp=4) == 3 * 4 * 4
    assert StateTensor(name="ssm", shape=(10, 4), dtype="float16").size("float32", tp=1) == 80


@pytest.mark.parametrize("context", [1, 1_500, 10**6])
def test_a_cross_cache_is_sized_by_its_source(context: int) -> None:
    # Whisper: 1,500 encoder positions, 20 heads of 64 + 64.
    assert CROSS.tokens_held(context) == 1_500
    assert CROSS.token_bytes(BF16, tp=1) == 5_120
    assert CROSS.request_bytes(context, BF16, "bfloat16", tp=1) == 7_680_000
    assert CROSS.request_bytes(context, BF16, "bfloat16", tp=4) == 1_920_000


def test_a_source_without_a_longest_length_is_as_long_as_the_request() -> None:
    cache = CrossCache(kv_heads=20, head_dim=64, head_dim_v=64, source_tokens=None)
    assert [cache.tokens_held(context) for context in (0, 1, 5_000)] == [0, 1, 5_000]
    assert cache.request_bytes(5_000, BF16, "bfloat16", tp=2) == 5_000 * 2_560


@pytest.mark.parametrize("context", [1, 10**6])
def test_a_shared_cache_stores_nothing(context: int) -> None:
    assert SHARED.tokens_held(context) == 0
    assert SHARED.token_bytes(BF16, tp=1) == 0
    assert SHARED.fixed_bytes("bfloat16", tp=1) == 0
    assert SHARED.request_bytes(context, BF16, "bfloat16", tp=1) == 0


def test_a_70b_by_hand() -> None:
    # Llama 3.1 70B: 80 layers, 8 KV heads of 128: 327,680 bytes a token, 40 GiB at 131,072.
    assert 80 * FULL.token_bytes(BF16, tp=1) == 327_680
    assert 80 * FULL.request_bytes(131_072, BF16, "bfloat16", tp=1) == 40 * 2**30
    assert 80 * FULL.token_bytes(BF16, tp=4) == 81_920


# ---------------------------------------------------------------- laws

contexts = st.integers(0, 2**24)
ranks = st.integers(1, 64)
dtypes = st.sampled_from(("float32", "bfloat16", "float16"))
formats = st.sampled_from((BF16, FP32, FP8_KV, PER_TOKEN_HEAD))
heads = st.integers(1, 128)
dims = st.integers(1, 512)
sizes = st.integers(1, 2**20)
states = st.builds(
    StateTensor,
    name=st.just("ssm"),
    shape=st.tuples(sizes, sizes),
    split=st.sampled_from((None, 0, 1)),
    dtype=st.none() | dtypes,
)
full_caches = st.builds(FullCache, kv_heads=heads, head_dim=dims, head_dim_v=dims)
caches = st.one_of(
    full_caches,
    st.builds(WindowCache, kv_heads=heads, head_dim=dims, head_dim_v=dims, window=sizes),
    st.builds(ChunkedCache, kv_heads=heads, head_dim=dims, head_dim_v=dims, chunk=sizes),
    st.builds(LatentCache, latent_dim=dims, rope_dim=st.integers(0, 128)),
    st.builds(
        CompressedCache,
        latent_dim=dims,
        rope_dim=st.integers(0, 128),
        cell_bytes=sizes,
        stride=st.integers(1, 128),
        window=st.none() | sizes,
    ),
    st.builds(CompressorCache, state_dim=dims, window=sizes),
    st.builds(
        IndexerCache,
        head_dim=dims,
        scale_block=st.none() | dims,
        element_bytes=st.integers(1, 4),
        stride=st.integers(1, 128),
    ),
    st.builds(RecurrentCache, states=st.lists(states, min_size=1, max_size=3).map(tuple)),
    st.builds(
        CrossCache, kv_heads=heads, head_dim=dims, head_dim_v=dims, source_tokens=st.none() | sizes
    ),
    st.builds(SharedCache, layer=st.integers(0, 100)),
)


@given(cache=caches, one=contexts, other=contexts, kv=formats, dtype=dtypes, tp=ranks)
def test_more_context_never_holds_less(
    *, cache: LayerCache, one: int, other: int, kv: KvFormat, dtype: Dtype, tp: int
) -> None:
    shorter, longer = sorted((one, other))
    held = [cache.request_bytes(context, kv, dtype, tp=tp) for context in (shorter, longer)]
    assert 0 <= held[0] <= held[1]


@given(cache=caches, context=contexts, kv=formats, dtype=dtypes, one=ranks, other=ranks)
def test_more_ranks_never_hold_more_on_one(
    *, cache: LayerCache, context: int, kv: KvFormat, dtype: Dtype, one: int, other: int
) -> None:
    fewer, more = sorted((one, other))
    on_few = cache.request_bytes(context, kv, dtype, tp=fewer)
    on_many = cache.request_bytes(context, kv, dtype, tp=more)
    assert on_many <= on_few


@given(caches, contexts, formats, dtypes, ranks)
def test_all_ranks_together_hold_the_whole(
    cache: LayerCache, context: int, kv: KvFormat, dtype: Dtype, tp: int
) -> None:
    on_one = cache.request_bytes(context, kv, dtype, tp=tp)
    assert tp * on_one >= cache.request_bytes(context, kv, dtype, tp=1)


@given(full=full_caches, limit=sizes, context=contexts, kv=formats, tp=ranks)
def test_a_window_never_holds_more_than_full_attention(
    full: FullCache, limit: int, context: int, kv: KvFormat, tp: int
) -> None:
    shape = full.model_dump(exclude={"kind"})
    most = full.request_bytes(context, kv, "bfloat16", tp=tp)
    for cache in (WindowCache(**shape, window=limit), ChunkedCache(**shape, chunk=limit)):
        held = cache.request_bytes(context, kv, "bfloat16", tp=tp)
        assert held <= most
        assert (held == most) == (context <= limit)


# ---------------------------------------------------------------- as data


@pytest.mark.parametrize("cache", EVERY_KIND, ids=kinds)
def test_every_kind_survives_json(cache: LayerCache) -> None:
    adapter: TypeAdapter[LayerCache] = TypeAdapter(LayerCache)
    assert adapter.validate_json(adapter.dump_json(cache)) == cache


@pytest.mark.parametrize("cache", EVERY_KIND, ids=kinds)
def test_no_kind_changes_or_takes_unknown_fields(cache: LayerCache) -> None:
    with pytest.raises(ValidationError):
        cache.kind = "other"  # type: ignore[assignment,misc]
    with pytest.raises(ValidationError):
        type(cache).model_validate(cache.model_dump() | {"surprise": 1})


def test_there_are_ten_kinds() -> None:
    assert [cache.kind for cache in EVERY_KIND] == [
        "full", "window", "chunked", "latent", "compressed", "compressor", "indexer", "recurrent",
        "cross", "shared",
    ]  # fmt: skip
    kinds_there_are = {cache.__name__ for cache in get_args(get_args(LayerCache)[0])}
    assert {type(cache).__name__ for cache in EVERY_KIND} == kinds_there_are


@pytest.mark.parametrize(
    "stated",
    [
        {"kind": "full", "kv_heads": 0, "head_dim": 128, "head_dim_v": 128},
        {"kind": "full", "kv_heads": 8, "head_dim": -1, "head_dim_v": 128},
        {"kind": "full", "kv_heads": 8, "head_dim": 128, "head_dim_v": 0},
        {"kind": "window", "kv_heads": 8, "head_dim": 128, "head_dim_v": 128, "window": 0},
        {"kind": "chunked", "kv_heads": 8, "head_dim": 128, "head_dim_v": 128, "chunk": 0},
        {"kind": "latent", "latent_dim": 512, "rope_dim": -1},
        {"kind": "indexer", "head_dim": 128, "scale_block": 0},
        {"kind": "indexer", "head_dim": 128, "stride": 0},
        {"kind": "compressed", "latent_dim": 512, "rope_dim": 64, "cell_bytes": 0},
        {"kind": "compressed", "latent_dim": 512, "rope_dim": 64, "cell_bytes": 9, "stride": 0},
        {"kind": "compressed", "latent_dim": 512, "rope_dim": 64, "cell_bytes": 9, "window": 0},
        {"kind": "compressor", "state_dim": 512, "window": 0},
        {"kind": "recurrent", "states": []},
        {"kind": "recurrent", "states": [{"name": "ssm", "shape": [0]}]},
        {"kind": "cross", "kv_heads": 1, "head_dim": 1, "head_dim_v": 1, "source_tokens": 0},
        {"kind": "shared", "layer": -1},
        {"kind": "spiral"},
        {},
    ],
)
def test_what_no_model_can_have_is_refused(stated: dict[str, object]) -> None:
    adapter: TypeAdapter[LayerCache] = TypeAdapter(LayerCache)
    with pytest.raises(ValidationError):
        adapter.validate_python(stated)


@pytest.mark.parametrize(("shape", "split"), [((4, 4), 2), ((4,), -1), ((4,), 1), ((), None)])
def test_a_state_is_split_along_one_of_its_dimensions(
    shape: tuple[int, ...], split: int | None
) -> None:
    with pytest.raises(ValidationError):
        StateTensor(name="ssm", shape=shape, split=split)
    assert StateTensor(name="ssm", shape=(4, 6), split=1).size("float32", tp=4) == 4 * 4 * 2
    assert StateTensor(name="ssm", shape=(4, 6), split=None).size("float32", tp=4) == 4 * 4 * 6
