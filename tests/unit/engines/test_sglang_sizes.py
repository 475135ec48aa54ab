"""From bytes to tokens, windows, states and requests: small pools by hand, laws for all."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvplan.engines.sglang import pools, sizes, states
from kvplan.engines.sglang.history import NEWEST, rules_for
from kvplan.engines.sglang.kv_dtypes import Stored, resolve
from kvplan.engines.sglang.layers import Part, Rows
from kvplan.engines.sglang.sizes import Sizing
from kvplan.errors import EngineRefusesError, NotModelledError, UnknownNameError
from kvplan.models.caches import RecurrentCache, StateTensor

BF16 = Stored("bfloat16", 2)
FULL = Part((0, 1), 100)
WINDOW = Part((2, 3), 100)
PLAIN = Sizing(
    stages=(Rows(full=FULL),),
    rules=rules_for(NEWEST),
    page=1,
    context=1000,
    window=0,
    window_ratio=0.5,
    state_ratio=0.9,
    slots_per_request=0,
    slots=None,
    cached=True,
    asked_requests=None,
    most_tokens=None,
    chunk=512,
    batches=2,
)
WINDOWS = replace(PLAIN, stages=(Rows(full=FULL, window=WINDOW),), window=16)
STATES = replace(PLAIN, stages=(Rows(full=FULL, slot_bytes=1000),), slots_per_request=3)


def test_tokens_of_plain_layers() -> None:
    # Half as many requests as tokens, at most.
    assert sizes.solve(PLAIN, 10_199) == sizes.Sizes(50, 0, 0, 0, 25)
    assert sizes.solve(replace(PLAIN, page=16), 10_199).tokens == 48
    assert sizes.solve(replace(PLAIN, most_tokens=33), 10_199).tokens == 33
    assert sizes.solve(PLAIN, -5).tokens == 0


def test_the_fullest_stage_decides() -> None:
    stages = (Rows(full=Part((0,), 100)), Rows(full=Part((1, 2, 3), 100)))
    assert sizes.solve(replace(PLAIN, stages=stages), 30_000).tokens == 100


@pytest.mark.parametrize(
    ("context", "requests"), [(1000, 4096), (131_072, 3906), (10**6, 2048), (250_000, 2048)]
)
def test_the_default_of_running_requests(context: int, requests: int) -> None:
    # A million tokens: 512 requests for each of full length, within 2,048 and 4,096.
    sizing = replace(PLAIN, context=context)
    assert sizes.solve(sizing, 200 * 10**6).requests == requests


def test_requests_that_were_asked_for() -> None:
    assert sizes.solve(replace(PLAIN, asked_requests=7), 10_000).requests == 7
    assert sizes.solve(replace(PLAIN, asked_requests=70), 10_000).requests == 25
    older = replace(PLAIN, asked_requests=70, rules=rules_for("0.5.9"))
    assert sizes.solve(older, 10_000).requests == 70


def test_windows_get_a_share_of_the_tokens() -> None:
    # 200 bytes, and half of 200, a token.
    assert sizes.solve(WINDOWS, 30_000) == sizes.Sizes(100, 50, 0, 0, 50)
    assert sizes.allocated(WINDOWS, sizes.solve(WINDOWS, 30_000), 0) == 101 * 200 + 51 * 200


def test_windows_without_a_prefix_cache_are_sized_by_the_requests() -> None:
    sizing = replace(WINDOWS, cached=False, asked_requests=2)
    # A request: 16 of the window, 128 until it is cleaned up, a page more and one decoded: 146.
    # Twice that, two chunks of 512 and a page.
    assert sizing.live_window_tokens == 146
    found = sizes.solve(sizing, 200 * (2 * 146 + 2 * 512 + 1) + 20_000)
    assert (found.tokens, found.window_tokens) == (100, 1317)
    assert sizes.solve(replace(sizing, rules=rules_for("0.5.21")), 30_000).window_tokens == 50


def test_only_windows() -> None:
    sizing = replace(WINDOWS, stages=(Rows(window=WINDOW),))
    found = sizes.solve(sizing, 30_000)
    assert (found.tokens, found.window_tokens) == (150, 150)


def test_a_pool_of_windows_has_to_hold_one() -> None:
    found = sizes.solve(WINDOWS, 10_000)
    assert found.window_tokens == 16
    assert sizes.longest(WINDOWS, found, 10) == 0
    assert sizes.by_memory(WINDOWS, found, 5) == 0


def test_states_get_their_share_first() -> None:
    # 0.9 / 1.9 of 19,000 is 9,000: eight slots and the padding; 10,000 remain for tokens.
    found = sizes.solve(STATES, 19_000)
    assert found == sizes.Sizes(50, 0, 8, 0, 2)
    assert sizes.allocated(STATES, found, 0) == 51 * 200 + 9 * 1000
    older = sizes.solve(replace(STATES, rules=rules_for("0.5.15")), 19_000)
    assert (older.slots, older.tokens) == (9, 50)


def test_slots_that_were_asked_for() -> None:
    assert sizes.solve(replace(STATES, slots=5), 19_000) == sizes.Sizes(65, 0, 5, 0, 1)
    uncached = replace(STATES, cached=False, asked_requests=4, slots_per_request=1)
    assert sizes.solve(uncached, 19_000) == sizes.Sizes(70, 0, 4, 0, 4)


def test_without_attention_tokens_are_only_numbers() -> None:
    sizing = replace(STATES, stages=(Rows(slot_bytes=1000),))
    found = sizes.solve(sizing, 19_000)
    assert (found.tokens, found.slots) == (1000, 8)
    assert sizes.longest(sizing, found, 5000) == 1000


def test_a_draft_is_paid_like_layers_of_the_model() -> None:
    sizing = replace(PLAIN, draft_layers=2, draft_token_bytes=200)
    found = sizes.solve(sizing, 10_000)
    assert found.tokens == 25
    assert sizes.allocated(sizing, found, 0) == 2 * 26 * 200


def test_copies_of_states_for_drafts() -> None:
    sizing = replace(STATES, draft_tokens=4, asked_requests=2, slots=6)
    # Two requests and one more, times four.
    assert sizes.solve(sizing, 30_000).drafted_slots == 12


def test_what_a_request_holds() -> None:
    assert sizes.need_of(replace(WINDOWS, page=16), 100) == sizes.Need(7, 112, 0)
    assert sizes.need_of(WINDOWS, 900) == sizes.Need(900, 146, 0)
    assert sizes.need_of(STATES, 10).slots == 3


def test_one_token_is_kept_back() -> None:
    found = sizes.solve(PLAIN, 10_000)
    assert sizes.longest(PLAIN, found, 1000) == 49
    assert sizes.held(PLAIN, found, 49) == 1
    assert sizes.held(PLAIN, found, 50) == 0
    assert sizes.concurrency(PLAIN, found, 20) == 2.5


SIZINGS = st.builds(
    replace,
    st.sampled_from([PLAIN, WINDOWS, STATES]),
    page=st.sampled_from([1, 16, 64]),
    context=st.integers(1, 10**6),
    cached=st.booleans(),
    asked_requests=st.none() | st.integers(1, 64),
    most_tokens=st.none() | st.integers(1, 10**5),
    rules=st.sampled_from([rules_for("0.5.9"), rules_for("0.5.15"), rules_for(NEWEST)]),
)
BYTES = st.integers(-(10**6), 10**9)


@given(SIZINGS, BYTES, st.integers(0, 10**8), st.integers(1, 10**5))
def test_more_bytes_never_hold_less(sizing: Sizing, few: int, more: int, length: int) -> None:
    less, most = (sizes.solve(sizing, available) for available in (few, few + more))
    assert less.tokens <= most.tokens or sizing.most_tokens is not None or sizing.slot_bytes
    assert min(less.tokens, less.window_tokens, less.slots, less.requests) >= 0
    if not sizing.slot_bytes:
        assert sizes.held(sizing, less, length) <= sizes.held(sizing, most, length)


@given(SIZINGS, BYTES, st.integers(1, 10**5), st.integers(0, 10**5))
def test_a_longer_request_never_holds_less(
    sizing: Sizing, available: int, length: int, more: int
) -> None:
    found = sizes.solve(sizing, available)
    assert sizes.held(sizing, found, length) >= sizes.held(sizing, found, length + more)


@given(SIZINGS, st.integers(10**5, 10**9))
def test_pools_stay_in_the_budget_but_for_a_page(sizing: Sizing, available: int) -> None:
    found = sizes.solve(replace(sizing, asked_requests=None), available)
    taken = sizes.allocated(sizing, found, 0)
    rows = sizing.stages[0]
    page = sizing.page * (rows.full_bytes + rows.window.token_bytes)
    assert taken <= available + page + rows.slot_bytes


def test_bytes_of_a_request_table() -> None:
    # The newest release has one row more: (2048 + 1) × 131,072 × 4.
    assert pools.request_table_bytes(2048, 131_072, padding=1) == 1_074_266_112
    assert pools.request_table_bytes(2048, 131_072, padding=0) == 2**30


def test_bytes_of_a_token() -> None:
    assert pools.headed_bytes(8, 128, 128, BF16) == 4096
    assert pools.headed_bytes(8, 192, 128, Stored("mxfp8", 1, 32)) == 8 * 320 + 80
    assert pools.latent_bytes(512, 64, BF16) == 1152
    fp8 = Stored("fp8_e4m3", 1)
    assert pools.sparse_latent_bytes(512, 64, fp8, raw=False) == 512 + 16 + 128
    assert pools.sparse_latent_bytes(512, 64, fp8, raw=True) == 576
    assert pools.sparse_latent_bytes(512, 64, BF16, raw=False) == 1152
    assert pools.index_bytes(128) == 132


def _delta(*, heads: int = 32, groups: int = 16) -> RecurrentCache:
    return RecurrentCache(
        states=(
            StateTensor(name="conv", shape=(4096, 3)),
            StateTensor(name="conv groups", shape=(groups, 256, 3)),
            StateTensor(name="recurrent", shape=(heads, 128, 128)),
        )
    )


def test_bytes_of_a_slot() -> None:
    # Convolutions: (4096 + 16 × 256) × 3 × 2; the state in fp32: 32 × 128 × 128 × 4.
    assert states.slot_bytes([_delta()], tp=1, ssm_dtype=None) == 49_152 + 2_097_152
    assert states.slot_bytes([_delta()], tp=1, ssm_dtype="bfloat16") == 49_152 + 1_048_576
    assert states.slot_bytes([_delta()], tp=4, ssm_dtype=None) == (49_152 + 2_097_152) // 4
    # Groups that do not divide are repeated: one on every rank.
    few = states.slot_bytes([_delta(groups=1)], tp=8, ssm_dtype=None)
    assert few == (512 + 256) * 3 * 2 + 4 * 128 * 128 * 4
    with pytest.raises(EngineRefusesError, match="does not divide the 6 channels or heads"):
        states.slot_bytes([_delta(heads=6)], tp=4, ssm_dtype=None)
    shift = RecurrentCache(states=(StateTensor(name="shift", shape=(64,)),))
    with pytest.raises(NotModelledError, match="RWKV"):
        states.slot_bytes([shift], tp=1, ssm_dtype=None)


@pytest.mark.parametrize(
    ("architecture", "cached", "tracked", "strategy", "overlap", "slots"),
    [
        ("Qwen3NextForCausalLM", False, True, "auto", True, 1),
        ("Qwen3NextForCausalLM", True, True, "auto", True, 5),
        ("Qwen3NextForCausalLM", True, False, "auto", True, 3),
        ("Qwen3NextForCausalLM", True, True, "auto", False, 3),
        ("JambaForCausalLM", True, True, "auto", True, 3),
        ("JambaForCausalLM", True, True, "extra_buffer", False, 4),
        ("JambaForCausalLM", True, True, "extra_buffer_lazy", True, 4),
    ],
)
def test_slots_of_a_request(
    architecture: str, *, cached: bool, tracked: bool, strategy: str, overlap: bool, slots: int
) -> None:
    found = states.slots_per_request(
        architecture, cached=cached, tracked=tracked, strategy=strategy, overlap=overlap
    )
    assert found == slots


@pytest.mark.parametrize(
    ("asked", "prescribed", "sparse", "major", "name"),
    [
        ("auto", None, False, 9, "bfloat16"),
        ("auto", "fp8", False, 9, "fp8_e4m3"),
        ("auto", None, True, 9, "bfloat16"),
        ("auto", None, True, 10, "fp8_e4m3"),
        ("fp8", None, False, 8, "fp8_e4m3"),
        ("bf16", "fp8", False, 9, "bfloat16"),
    ],
)
def test_cache_types(
    asked: str, prescribed: str | None, *, sparse: bool, major: int, name: str
) -> None:
    found = resolve(asked, "bfloat16", prescribed=prescribed, sparse=sparse, sm=(major, 0))
    assert found.name == name


def test_cache_types_that_are_turned_down() -> None:
    def refused(asked: str, *, sparse: bool = False) -> None:
        resolve(asked, "bfloat16", prescribed=None, sparse=sparse, sm=(9, 0))

    with pytest.raises(NotModelledError, match="nvfp4"):
        refused("nvfp4")
    with pytest.raises(UnknownNameError) as it:
        refused("fp8_e4m4")
    assert "fp8_e4m3" in str(it.value.hint)
    with pytest.raises(EngineRefusesError, match="sparse MLA"):
        refused("fp8_e5m2", sparse=True)
