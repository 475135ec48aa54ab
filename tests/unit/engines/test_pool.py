"""Bytes → blocks, tokens, concurrency, the longest request: by hand, by law, by brute force."""

from __future__ import annotations

from dataclasses import replace

import pytest
import slow_vllm
from hypothesis import given
from hypothesis import strategies as st
from layer_stacks import Stack, stacks

from kvplan.engines.vllm.groups import Group, group
from kvplan.engines.vllm.history import rules_for
from kvplan.engines.vllm.pages import PageSpec
from kvplan.engines.vllm.pool import Pool, whole_requests
from kvplan.errors import EngineRefusesError

GIB = 2**30


def a_group(page: PageSpec, layers: int, stage_bytes: tuple[int, ...]) -> Group:
    """Nothing of its pages is padding."""
    return Group(page, ((page, layers),), tuple(range(layers)), stage_bytes, stage_bytes)


# Llama 3.1 8B in bf16: 32 layers of 64 KiB a block of 16 tokens.
LLAMA = a_group(PageSpec("full", 16, 65_536), 32, (32 * 65_536,))
BLOCK = 2 * 2**20
# Gemma 3 27B: 52 windows of 1,024 tokens in six groups, 10 full layers.
PAGE = 262_144
GEMMA = (
    *(a_group(PageSpec("window", 16, PAGE, 1024), n, (n * PAGE,)) for n in (9, 9, 9, 9, 8, 8)),
    a_group(PageSpec("full", 16, PAGE), 10, (10 * PAGE,)),
)


def pool(*groups: Group, version: str = "0.33.0", **changes: int | None) -> Pool:
    plain = Pool(
        groups=groups, rules=rules_for(version), in_flight=16_384, dcp=1, blocks_override=None
    )
    return replace(plain, **changes)  # type: ignore[arg-type]


def test_a_block_holds_a_page_of_each_layer_of_the_widest_group() -> None:
    assert pool(LLAMA).stage_block_bytes == (BLOCK,)
    assert pool(*GEMMA).stage_block_bytes == (10 * PAGE,)
    two = (a_group(LLAMA.page, 5, (300, 200)), a_group(LLAMA.page, 5, (100, 400)))
    assert pool(*two).stage_block_bytes == (300, 400)


def test_llama_on_ten_gib() -> None:
    """10 GiB / 2 MiB = 5,120 blocks of 16 tokens; 8,192 tokens hold 512 of them."""
    llama = pool(LLAMA)
    assert llama.blocks((10 * GIB,)) == 5120
    assert llama.request_blocks(8192) == 512
    assert llama.concurrency(5120, 8192) == 10.0
    assert llama.tokens(5120, 8192) == 81_920
    assert llama.usable_blocks((10 * GIB,)) == 5119
    assert llama.longest(5119, 131_072) == 5119 * 16 == 81_904
    # One block is the null block: the tenth request lacks it.
    assert whole_requests(llama, 5120, 8192, max_num_seqs=1024) == 9
    assert whole_requests(llama, 5121, 8192, max_num_seqs=1024) == 10
    assert whole_requests(llama, 5121, 8192, max_num_seqs=4) == 4


def test_gemma_on_40_gib() -> None:
    """Six windows hold (1,023 + 16,384) / 16 + 1 = 1,089 blocks each, capped by the length."""
    gemma = pool(*GEMMA)
    blocks = 43_486_543_872 // (10 * PAGE)
    assert gemma.blocks((43_486_543_872,)) == blocks == 16_588
    assert gemma.request_blocks(16_384) == 6 * 1025 + 1024 == 7174
    assert gemma.request_blocks(131_072) == 6 * 1089 + 8192 == 14_726
    assert gemma.concurrency(blocks, 16_384) == 16_588 / 7174
    assert gemma.tokens(blocks, 16_384) == int(16_588 / 7174 * 16_384)
    assert gemma.group_blocks(GEMMA[0], 131_072) == 1089
    assert gemma.group_blocks(GEMMA[-1], 131_072) == 8192


@pytest.mark.parametrize(
    ("version", "tokens"),
    [
        ("0.20.0", 16_588 // 7 * 16),
        ("0.21.0", int(16_588 / 7174 * 16_384)),
    ],
)
def test_what_a_release_calls_the_size_of_the_cache(version: str, tokens: int) -> None:
    assert pool(*GEMMA, version=version).tokens(16_588, 16_384) == tokens


def test_the_smallest_block_counts_and_ranks_multiply() -> None:
    mixed = (a_group(PageSpec("full", 32, 1), 1, (1,)), a_group(PageSpec("full", 16, 1), 1, (1,)))
    assert pool(*mixed, version="0.20.0").tokens(101, 1000) == 50 * 16
    assert pool(LLAMA, version="0.20.0", dcp=4).tokens(100, 1000) == 100 * 16 * 4


def test_a_token_less_is_reported_where_floats_say_so() -> None:
    """The engine multiplies a float by the length and cuts: 127 tokens, where 8 × 16 are 128."""
    assert pool(LLAMA).request_blocks(784) == 49
    assert pool(LLAMA).tokens(8, 784) == int(8 / 49 * 784) == 127


@pytest.mark.parametrize(("version", "usable"), [("0.28.0", 5120), ("0.29.0", 5119)])
def test_admission_sets_the_null_block_aside_since_0_29(version: str, usable: int) -> None:
    assert pool(LLAMA, version=version).usable_blocks((10 * GIB,)) == usable


@pytest.mark.parametrize(
    ("available", "blocks", "usable"),
    [
        (BLOCK, 1, 0),
        (BLOCK - 1, 0, 0),
        (2 * BLOCK, 2, 1),
        (2 * BLOCK - 1, 1, 0),
        (1, 0, 0),
        (0, 0, 0),
        (-1, 0, 0),
        (-10 * GIB, 0, 0),
    ],
)
def test_too_little_memory_is_no_blocks_never_negative(
    available: int, blocks: int, usable: int
) -> None:
    assert pool(LLAMA).blocks((available,)) == blocks
    assert pool(LLAMA).usable_blocks((available,)) == usable


def test_the_poorest_stage_decides_and_one_without_caches_does_not() -> None:
    three = pool(a_group(LLAMA.page, 3, (200, 100, 0)))
    assert three.blocks((2000, 500, 0)) == 5
    assert three.blocks((600, 900, 0)) == 3
    assert three.usable_blocks((2000, 500, 0)) == 4
    assert three.usable_blocks((600, 900, 0)) == 2
    assert three.blocks((600, -1, 0)) == 0
    assert three.usable_blocks((600, -1, 0)) == 0


def test_every_stage_has_its_bytes() -> None:
    with pytest.raises(ValueError, match=r"shorter|longer"):
        pool(LLAMA).blocks((GIB, GIB))
    with pytest.raises(ValueError, match=r"shorter|longer"):
        pool(LLAMA).usable_blocks(())


@pytest.mark.parametrize(("version", "usable"), [("0.28.0", 7), ("0.29.0", 6)])
def test_an_override_takes_the_place_of_memory(version: str, usable: int) -> None:
    given_blocks = pool(LLAMA, version=version, blocks_override=7)
    for available in (0, GIB, 100 * GIB):
        assert given_blocks.blocks((available,)) == 7
        assert given_blocks.usable_blocks((available,)) == usable


def test_the_longest_request() -> None:
    llama = pool(LLAMA)
    assert llama.longest(0, 1000) == 0
    assert llama.longest(1, 1000) == 16
    assert llama.longest(2, 1000) == 32
    assert llama.longest(63, 1000) == 1000
    assert llama.longest(62, 1000) == 992
    assert llama.longest(62, 993) == 992
    assert llama.longest(1, 1) == 1
    assert llama.longest(0, 1) == 0
    windows = pool(a_group(PageSpec("window", 16, 1, 100), 1, (1,)))
    assert windows.longest(1, 1000) == 0  # a token holds two blocks
    assert windows.longest(2, 1000) == 16


def test_the_longest_request_in_blocks_of_one_token() -> None:
    single = pool(a_group(PageSpec("full", 1, 1), 1, (1,)))
    assert [single.longest(usable, 5) for usable in range(7)] == [0, 1, 2, 3, 4, 5, 5]
    assert single.longest(1, 2) == 1


def test_growth_counts_the_groups_that_still_grow() -> None:
    gemma = pool(*GEMMA)
    last = 1024 - 1 + 16_384
    assert gemma.growth(1000, 0) == 7 * 10 * PAGE / 16
    assert gemma.growth(last - 1, 0) == 7 * 10 * PAGE / 16
    assert gemma.growth(last, 0) == 10 * PAGE / 16
    assert pool(LLAMA).growth(1000, 0) == BLOCK / 16
    assert pool(LLAMA, dcp=4).growth(1000, 0) == BLOCK / 64
    two = pool(a_group(PageSpec("full", 16, 1), 5, (300, 200)))
    assert (two.growth(9, 0), two.growth(9, 1)) == (300 / 16, 200 / 16)


SPECS = st.builds(
    PageSpec,
    st.sampled_from(["full", "latent", "window", "latent_window", "chunked", "cross", "recurrent"]),
    st.sampled_from([16, 32, 64]),
    st.just(1),
    st.integers(1, 3000),
    held=st.sampled_from([None, 1, 4]),
    extra=st.integers(0, 9),
)


@st.composite
def pools(draw: st.DrawFn) -> Pool:
    stages = draw(st.integers(1, 3))
    sizes = st.tuples(*[st.integers(1, 10**6)] * stages)
    groups = draw(st.lists(st.builds(a_group, SPECS, st.just(1), sizes), min_size=1, max_size=5))
    return Pool(
        groups=tuple(groups),
        rules=rules_for(draw(st.sampled_from(["0.8.5", "0.9.2", "0.20.0", "0.28.0", "0.33.0"]))),
        in_flight=draw(st.integers(1, 5000)),
        dcp=draw(st.sampled_from([1, 2, 8])),
        blocks_override=None,
    )


LENGTHS = st.integers(1, 10_000)
BYTES = st.integers(-(10**6), 10**10)


@given(pools(), st.data())
def test_blocks_never_take_more_than_a_stage_has(some: Pool, data: st.DataObject) -> None:
    stages = len(some.stage_block_bytes)
    available = data.draw(st.lists(BYTES, min_size=stages, max_size=stages))
    blocks = some.blocks(available)
    assert blocks >= 0
    if blocks:
        assert all(
            blocks * block <= held
            for block, held in zip(some.stage_block_bytes, available, strict=True)
        )
    assert any(
        (blocks + 1) * block > held
        for block, held in zip(some.stage_block_bytes, available, strict=True)
    )
    reserved = some.rules.null_block_reserved
    assert some.usable_blocks(available) == max(0, blocks - reserved)


@given(pools(), LENGTHS, LENGTHS)
def test_a_longer_request_never_holds_less(some: Pool, one: int, other: int) -> None:
    short, long = sorted((one, other))
    assert 1 <= some.request_blocks(short) <= some.request_blocks(long)
    parts = [some.group_blocks(group, long) for group in some.groups]
    assert sum(parts) == some.request_blocks(long)


@given(pools(), st.integers(0, 300), st.integers(1, 3000))
def test_the_longest_request_is_what_trying_each_finds(
    some: Pool, usable: int, at_most: int
) -> None:
    fitting = [n for n in range(1, at_most + 1) if some.request_blocks(n) <= usable]
    assert some.longest(usable, at_most) == max(fitting, default=0)


@given(pools(), LENGTHS, st.integers(0, 10**6), st.integers(0, 10**6))
def test_more_blocks_never_report_fewer_tokens(
    some: Pool, length: int, one: int, other: int
) -> None:
    few, many = sorted((one, other))
    assert some.tokens(few, length) <= some.tokens(many, length)
    assert some.concurrency(few, length) <= some.concurrency(many, length)


@given(pools(), LENGTHS, st.integers(0, 10**5), st.integers(1, 500))
def test_the_null_block_is_held_by_nobody(
    some: Pool, length: int, blocks: int, max_num_seqs: int
) -> None:
    held = whole_requests(some, blocks, length, max_num_seqs=max_num_seqs)
    assert 0 <= held <= max_num_seqs
    one = some.request_blocks(length)
    assert held == 0 or held * one + 1 <= blocks
    if held < max_num_seqs:
        assert (held + 1) * one + 1 > blocks


@given(pools(), LENGTHS, st.integers(0, 10**6))
def test_concurrency_is_blocks_over_what_a_request_holds(
    some: Pool, length: int, blocks: int
) -> None:
    if some.rules.tokens == "blocks":  # before 0.9: tokens over tokens
        smallest = min(group.page.block_size for group in some.groups)
        assert some.concurrency(blocks, length) == blocks * smallest / length
        return
    assert some.concurrency(blocks, length) == blocks / some.request_blocks(length)


def test_a_release_with_one_group_counts_tokens_by_the_block() -> None:
    """0.8 and V0: 101 blocks of 16 tokens, of which a request of 1,000 has 1.616 times."""
    for version in ("0.6.6", "0.8.5"):
        old = pool(LLAMA, version=version)
        assert old.tokens(101, 1000) == 1616
        assert old.concurrency(101, 1000) == 1.616
        assert old.usable_blocks((101 * BLOCK,)) == 101
    # V1 has a null block even where admission does not count it; V0 has none.
    assert whole_requests(pool(LLAMA, version="0.8.5"), 126, 1000, max_num_seqs=256) == 1
    assert whole_requests(pool(LLAMA, version="0.6.6"), 126, 1000, max_num_seqs=256) == 2


def test_states_hold_their_blocks_at_any_length_and_do_not_grow() -> None:
    """Three groups of states, 3 blocks each, beside full attention in blocks of 576 tokens."""
    state = a_group(PageSpec("recurrent", 576, 1, held=3), 12, (12,))
    hybrid = pool(state, state, state, a_group(PageSpec("full", 576, 1), 12, (12,)))
    assert hybrid.request_blocks(1) == 9 + 1
    assert hybrid.request_blocks(577) == 9 + 2
    assert hybrid.longest(10, 10_000) == 576
    assert hybrid.longest(9, 10_000) == 0
    assert hybrid.growth(100, 0) == 12 / 576
    assert hybrid.concurrency(100, 577) == 100 / 11
    alone = pool(state)
    assert alone.longest(3, 10**6) == 10**6
    assert alone.longest(2, 10**6) == 0
    assert alone.growth(1, 0) == 0.0


def test_an_encoder_takes_the_same_blocks_whatever_is_generated() -> None:
    """8,192 encoder tokens are 512 blocks; 448 of the decoder 28."""
    cross = a_group(PageSpec("cross", 16, 1, 8192), 32, (32,))
    whisper = pool(cross, a_group(PageSpec("full", 16, 1), 32, (32,)))
    assert whisper.request_blocks(448) == 512 + 28
    assert whisper.longest(539, 448) == 27 * 16
    assert whisper.longest(512, 448) == 0
    assert whisper.growth(10, 0) == 32 / 16


def stacked(stack: Stack, in_flight: int, dcp: int) -> tuple[Pool, list[slow_vllm.Layers]] | None:
    """The pool of random layers, and what a look at each of them finds."""
    try:
        found = group(stack.layers, stack.stages, stack.rules)
    except EngineRefusesError:
        return None
    slow = slow_vllm.grouped(dict(enumerate(stack.pages)), stack.rules)
    return Pool(found, stack.rules, in_flight, dcp, None), slow


IN_FLIGHT, DCP = st.sampled_from([0, 50, 1000]), st.sampled_from([1, 2, 4])


@given(
    stack=stacks(),
    in_flight=IN_FLIGHT,
    dcp=DCP,
    length=st.integers(1, 700),
    usable=st.integers(0, 40),
    at_most=st.integers(1, 300),
)
def test_a_pool_of_random_layers_is_that_of_a_look_at_each(
    *, stack: Stack, in_flight: int, dcp: int, length: int, usable: int, at_most: int
) -> None:
    both = stacked(stack, in_flight, dcp)
    if both is None:
        return
    some, slow = both
    assert some.request_blocks(length) == slow_vllm.request_blocks(slow, length, in_flight, dcp)
    assert some.longest(usable, at_most) == slow_vllm.longest(slow, usable, at_most, in_flight, dcp)
    assert some.stage_block_bytes == tuple(
        slow_vllm.block_bytes(slow, stage) for stage in stack.stages
    )


@given(stacks(), st.data())
def test_no_stage_of_random_layers_allocates_more_than_it_has(
    stack: Stack, data: st.DataObject
) -> None:
    both = stacked(stack, 0, 1)
    if both is None:
        return
    some, slow = both
    amounts = st.lists(
        st.integers(0, 10**7), min_size=len(stack.stages), max_size=len(stack.stages)
    )
    less = data.draw(amounts)
    more = [bytes_ + extra for bytes_, extra in zip(less, data.draw(amounts), strict=True)]
    blocks = some.blocks(less)
    assert blocks == slow_vllm.blocks(slow, stack.stages, less)
    assert blocks <= some.blocks(more)
    for place, (size, bytes_) in enumerate(zip(some.stage_block_bytes, less, strict=True)):
        assert blocks * size <= bytes_
        # What a group leaves of a block is padding, and so is what its pages don't use.
        for of in some.groups:
            assert 0 <= of.stage_used[place] <= of.stage_bytes[place] <= size
        assert any(of.stage_bytes[place] == size for of in some.groups)


@given(stacks(), IN_FLIGHT, st.integers(1, 3000))
def test_growth_of_random_layers_is_what_blocks_are_added_in_the_long_run(
    stack: Stack, in_flight: int, length: int
) -> None:
    """Over as many tokens as all blocks divide, blocks are added as growth says they are."""
    both = stacked(stack, in_flight, 1)
    if both is None:
        return
    some, _ = both
    far = 10_000  # all windows are full
    step = 64 * 9 * 4  # a multiple of every block here: 16, 32, 64, and what makes pages equal
    blocks = {of.page.block_size for of in some.groups}
    if any(step % block for block in blocks):
        return
    start = far - far % step
    added = some.request_blocks(start + step) - some.request_blocks(start)
    assert added * some.stage_block_bytes[0] == pytest.approx(some.growth(far, 0) * step)
    assert some.growth(length, 0) >= some.growth(far, 0)
