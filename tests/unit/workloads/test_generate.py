"""Seeded requests and conversations."""

from __future__ import annotations

from itertools import islice, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvplan.errors import UsageError
from kvplan.workloads.arrivals import Arrivals
from kvplan.workloads.distributions import Fixed, Lognormal
from kvplan.workloads.generate import generate, generate_sessions
from kvplan.workloads.lengths import Kind, Lengths
from kvplan.workloads.requests import PrefixUse, Request, check_request
from kvplan.workloads.sessions import Sessions
from kvplan.workloads.sharing import PrefixRule

LENGTHS = Lengths((Kind(1, Lognormal(1000, 1.0), Lognormal(200, 0.8)),), limit=8192)


@given(st.integers(0, 2**32))
def test_the_same_seed_gives_the_same_requests_in_order(seed: int) -> None:
    first = list(generate(LENGTHS, Arrivals(5), seed=seed, requests=30))
    assert first == list(generate(LENGTHS, Arrivals(5), seed=seed, requests=30))
    assert all(a.arrival_s <= b.arrival_s for a, b in pairwise(first))
    assert all(check_request(one).total_tokens <= 8192 for one in first)


def test_another_rate_leaves_the_lengths_as_they_are() -> None:
    slow = generate(LENGTHS, Arrivals(1), seed=1, requests=50)
    fast = generate(LENGTHS, Arrivals(9), seed=1, requests=50)
    assert [one.total_tokens for one in slow] == [one.total_tokens for one in fast]


def test_a_prefix_comes_in_front() -> None:
    rule = PrefixRule("system", 500, tenants=3, change_every_s=10.0)
    plain = generate(LENGTHS, Arrivals(5), seed=1, requests=200)
    for bare, one in zip(
        plain, generate(LENGTHS, Arrivals(5), seed=1, requests=200, prefixes=rule), strict=True
    ):
        assert one.prefix is not None
        assert one.prompt_tokens == bare.prompt_tokens + 500
        assert one.prefix.id.endswith(f"/{int(one.arrival_s // 10)}")


def test_conversations_grow_and_come_in_order() -> None:
    sessions = Sessions(Fixed(4), Lognormal(100, 0.5), Fixed(50), think_s=30, first_tokens=10)
    found = list(generate_sessions(sessions, Arrivals(0.2), seed=5, conversations=20))
    assert len(found) == 80
    assert all(a.arrival_s <= b.arrival_s for a, b in pairwise(found))
    for name in {one.session for one in found}:
        turns = [one for one in found if one.session == name]
        assert [one.turn for one in turns] == [0, 1, 2, 3]
        assert all(b.prompt_tokens > a.total_tokens for a, b in pairwise(turns))


def test_conversations_keep_the_prefix_of_their_tenant() -> None:
    sessions = Sessions(Fixed(3), Fixed(100), Fixed(50), think_s=30)
    rule = PrefixRule("system", 500, tenants=3, share=0.6, change_every_s=20.0)
    found = list(generate_sessions(sessions, Arrivals(2), seed=5, conversations=60, prefixes=rule))
    of = {one.session: one.prefix for one in found}
    assert all(one.prefix == of[one.session] for one in found)
    ids = {prefix.id for prefix in of.values() if prefix}
    assert {name.split("/")[1] for name in ids} == {"tenant 0", "tenant 1", "tenant 2"}
    assert {name.split("/")[2] for name in ids} == {"0", "1"}
    assert 20 < sum(prefix is not None for prefix in of.values()) < 50
    firsts = {one.prompt_tokens for one in found if one.turn == 0 and one.prefix}
    assert firsts == {600}


def test_turns_wait_for_answers_unless_it_is_stated_how_long_these_take() -> None:
    def pauses(**stated: float) -> list[float | None]:
        sessions = Sessions(Fixed(2), Fixed(100), Fixed(50), think_s=30, **stated)
        found = generate_sessions(sessions, Arrivals(2), seed=5, conversations=1)
        return [one.pause_s for one in found]

    assert pauses(seconds_per_token=0.1) == [None, None]
    first, second = pauses()
    assert first == 0.0
    assert second is not None
    assert second > 0


def test_a_conversation_ends_at_the_limit() -> None:
    sessions = Sessions(Fixed(100), Fixed(100), Fixed(100), limit=1000)
    found = list(generate_sessions(sessions, Arrivals(1), seed=0, conversations=3))
    assert len(found) == 3 * 5
    assert max(one.total_tokens for one in found) == 1000


def test_pairs_of_conversations_are_their_turns() -> None:
    pairs = Sessions(Fixed(2), Fixed(10), Fixed(5)).pairs()
    assert sorted(pairs) == [(10, 5, pytest.approx(0.5)), (25, 5, pytest.approx(0.5))]


def test_fewer_conversations_are_the_same_ones() -> None:
    sessions = Sessions(Fixed(1), Lognormal(100, 1.0), Fixed(5))
    many = list(generate_sessions(sessions, Arrivals(1), seed=2, conversations=9))
    assert many[:4] == list(generate_sessions(sessions, Arrivals(1), seed=2, conversations=4))


def test_a_stream_without_end_is_lazy() -> None:
    assert len(list(islice(generate(LENGTHS, Arrivals(1), seed=0), 3))) == 3


@pytest.mark.parametrize(
    "request_",
    [
        Request(0, 0, 1),
        Request(0, 1, 0),
        Request(-1, 1, 1),
        Request(float("nan"), 1, 1),
        Request(0, 5, 1, PrefixUse("p", 6)),
    ],
)
def test_requests_that_make_no_sense(request_: Request) -> None:
    with pytest.raises(UsageError):
        check_request(request_)
