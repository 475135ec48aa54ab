"""One layer's page: other blocks, padding, windows kept whole; blocks one request holds."""

from __future__ import annotations

import pytest
import slow_vllm
from hypothesis import given
from hypothesis import strategies as st
from layer_stacks import KINDS, specs

from kvplan.engines.vllm.pages import (
    Kind,
    PageSpec,
    Sides,
    as_counted,
    blocks_held,
    shared_by,
    still_grows,
)

# 16 tokens of 48 bytes; 32 bytes of the page are padding.
PADDED = PageSpec("window", 16, 800, 128, Sides(2, 32, 16), extra=2, padding=32)
FULL = PageSpec("full", 16, 768, sides=Sides(2, 32, 16))


@pytest.mark.parametrize(
    ("block", "page", "padding"),
    [
        (16, 800, 32),
        (8, 800, 416),  # 384 bytes of tokens in the same page
        (17, 816, 0),  # 17 × 48 take more than the padded page: none is left
        (32, 1536, 0),
    ],
)
def test_a_padded_page_in_other_blocks(block: int, page: int, padding: int) -> None:
    other = PADDED.with_block_size(block)
    assert (other.block_size, other.page_bytes, other.padding) == (block, page, padding)
    assert other.used_bytes == 48 * block
    assert (other.kind, other.span, other.extra, other.sides) == ("window", 128, 2, PADDED.sides)


@pytest.mark.parametrize(("block", "page"), [(8, 384), (16, 768), (64, 3072)])
def test_a_page_without_padding_in_other_blocks(block: int, page: int) -> None:
    assert FULL.with_block_size(block) == PageSpec("full", block, page, sides=FULL.sides)


def test_a_page_is_padded_to_any_size_once() -> None:
    assert FULL.padded_to(1000) == PageSpec("full", 16, 1000, sides=FULL.sides, padding=232)
    assert FULL.padded_to(1000).padded_to(1001).padding == 233
    assert FULL.padded_to(1000).used_bytes == 768
    assert FULL.padded_to(768) == FULL


def test_a_window_kept_whole_forgets_its_length() -> None:
    whole = PageSpec("full", 32, 1536, sides=PADDED.sides)
    assert PADDED.kept_whole(32) == whole
    assert PageSpec("chunked", 16, 768, 8192, PADDED.sides).kept_whole(32) == whole
    assert PageSpec("latent_window", 64, 576, 128).kept_whole(128) == PageSpec("latent", 128, 1152)


def test_a_release_may_take_a_value_to_be_as_long_as_its_key() -> None:
    """16 tokens of 32 + 32 bytes, and the padding stays."""
    twice = PADDED.with_keys_twice()
    assert (twice.page_bytes, twice.padding, twice.sides) == (1056, 32, Sides(2, 32, 32))
    assert FULL.with_keys_twice().page_bytes == 16 * 64
    equal = PageSpec("full", 16, 1024, sides=Sides(2, 32, 32))
    assert equal.with_keys_twice() is equal
    latent = PageSpec("latent", 16, 1024)
    assert latent.with_keys_twice() is latent


def test_which_kinds_are_counted_so_depends_on_the_release() -> None:
    both = frozenset({"full", "window"})
    assert as_counted(FULL, both) == FULL.with_keys_twice() != FULL
    assert as_counted(FULL, frozenset({"window", "kept_whole"})) is FULL
    assert as_counted(PADDED, frozenset({"window"})) == PADDED.with_keys_twice()
    assert as_counted(PADDED, frozenset()) is PADDED


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
        (PageSpec("indexer", 64, 1), 1025, 0, 8, 3),  # ceil(129 / 64)
        # min(window - 1 + in flight, length), rounded up, and one more
        (PageSpec("window", 16, 1, 1024), 100_000, 8192, 1, 577),
        (PageSpec("window", 16, 1, 1024), 100_000, 8193, 1, 577),
        (PageSpec("window", 16, 1, 1024), 100_000, 8194, 1, 578),
        (PageSpec("window", 16, 1, 1024), 32, 8192, 1, 3),
        (PageSpec("window", 16, 1, 1024), 33, 8192, 1, 4),
        (PageSpec("window", 16, 1, 1024), 1, 0, 1, 2),
        (PageSpec("latent_window", 4, 1, 8), 100_000, 9, 1, 5),  # (7 + 9) / 4 + 1
        (PageSpec("latent_window", 4, 1, 8), 100_000, 10, 1, 6),
        # Drafts of several modules keep tokens besides: 1,023 + 2 + 8,191 are 576 blocks.
        (PageSpec("window", 16, 1, 1024, extra=2), 100_000, 8191, 1, 577),
        (PageSpec("window", 16, 1, 1024, extra=2), 100_000, 8192, 1, 578),
        (PageSpec("chunked", 16, 1, 8192), 100_000, 8192, 1, 1024),
        (PageSpec("chunked", 16, 1, 8192), 100_000, 8193, 1, 1025),
        (PageSpec("chunked", 16, 1, 8192), 33, 8192, 1, 3),
        # Only what keeps every token is shared by ranks.
        (PageSpec("chunked", 16, 1, 8192), 100_000, 8192, 8, 1024),
        # An encoder's output, whatever the length.
        (PageSpec("cross", 16, 1, 8192), 1, 99, 1, 512),
        (PageSpec("cross", 16, 1, 1500), 10**6, 99, 8, 94),
        # States hold their blocks; where they follow the length, one for each block and draft.
        (PageSpec("recurrent", 576, 1, held=3), 1, 99, 1, 3),
        (PageSpec("recurrent", 576, 1, held=3), 10**6, 99, 8, 3),
        (PageSpec("recurrent", 576, 1), 576, 99, 1, 1),
        (PageSpec("recurrent", 576, 1), 577, 99, 8, 2),
        (PageSpec("recurrent", 576, 1, extra=4), 577, 99, 1, 6),
    ],
)
def test_blocks_of_one_request(
    spec: PageSpec, length: int, in_flight: int, dcp: int, blocks: int
) -> None:
    assert blocks_held(spec, length, in_flight=in_flight, dcp=dcp) == blocks


@pytest.mark.parametrize(
    ("kind", "length", "grows"),
    [
        ("full", 10**9, True),
        ("latent", 10**9, True),
        ("indexer", 10**9, True),
        ("window", 1101, True),  # keeps 1,000 - 1 + 3 + 100 tokens
        ("window", 1102, False),
        ("latent_window", 1101, True),
        ("latent_window", 1102, False),
        ("chunked", 1099, True),  # keeps 1,000 + 100
        ("chunked", 1100, False),
        ("cross", 1, False),
    ],
)
def test_windows_and_chunks_stop_growing(kind: Kind, length: int, *, grows: bool) -> None:
    spec = PageSpec(kind, 16, 1, 1000, extra=3)
    assert still_grows(spec, length, in_flight=100) is grows


def test_states_grow_only_where_they_follow_the_length() -> None:
    assert not still_grows(PageSpec("recurrent", 16, 1, held=2), 1, in_flight=0)
    assert still_grows(PageSpec("recurrent", 16, 1), 10**9, in_flight=0)


@pytest.mark.parametrize(
    ("kind", "ranks"),
    [("full", 8), ("latent", 8), ("indexer", 8), ("window", 1), ("chunked", 1), ("recurrent", 1),
     ("cross", 1), ("latent_window", 1)],
)  # fmt: skip
def test_ranks_share_what_keeps_every_token(kind: Kind, ranks: int) -> None:
    assert shared_by(PageSpec(kind, 16, 1), 8) == ranks
    assert shared_by(PageSpec(kind, 16, 1), 1) == 1


EVERY = specs((*KINDS, "latent_window"))
LENGTHS, IN_FLIGHT = st.integers(1, 10**6), st.integers(1, 100_000)


@given(EVERY, LENGTHS, IN_FLIGHT, st.sampled_from([1, 2, 8]))
def test_blocks_are_those_of_the_engine(
    spec: PageSpec, length: int, in_flight: int, dcp: int
) -> None:
    held = blocks_held(spec, length, in_flight=in_flight, dcp=dcp)
    assert held == slow_vllm.held(spec, length, in_flight, dcp) > 0
    assert held <= blocks_held(spec, length + 1, in_flight=in_flight, dcp=dcp)


@given(EVERY, LENGTHS, IN_FLIGHT)
def test_a_request_grows_as_long_as_it_is_said_to(
    spec: PageSpec, length: int, in_flight: int
) -> None:
    now = blocks_held(spec, length, in_flight=in_flight, dcp=1)
    ever = blocks_held(spec, 10**9, in_flight=in_flight, dcp=1)
    if still_grows(spec, length, in_flight=in_flight):
        # A page holds one more token at the last length that grows: then a block of one grows.
        single = PageSpec(spec.kind, 1, 1, spec.span, extra=spec.extra)
        at, after = (
            blocks_held(single, n, in_flight=in_flight, dcp=1) for n in (length, length + 1)
        )
        assert after == at + 1
    else:
        assert ever == now


@given(EVERY, st.integers(1, 64))
def test_other_blocks_use_as_many_bytes_a_token_and_a_page_covers_them(
    spec: PageSpec, times: int
) -> None:
    longer = spec.with_block_size(spec.block_size * times)
    assert longer.used_bytes == times * spec.used_bytes
    assert longer.page_bytes == longer.used_bytes + longer.padding
    assert longer.padding == max(0, spec.page_bytes - longer.used_bytes) * (spec.padding > 0)
    if times == 1:
        assert longer == spec
