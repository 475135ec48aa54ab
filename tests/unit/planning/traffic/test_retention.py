"""Sessions kept for their next turn: closed forms against drawn pauses."""

from __future__ import annotations

import math
from random import Random

import pytest

from kvplan import api
from kvplan.errors import UsageError
from kvplan.planning.traffic.day import Stream
from kvplan.planning.traffic.replica import measure
from kvplan.planning.traffic.retention import Retention
from kvplan.planning.traffic.seen import Life, seen
from kvplan.planning.traffic.traffic import Demand, Service, Traffic
from kvplan.sources.gpus import find_gpus
from kvplan.workloads.distributions import Fixed
from kvplan.workloads.sessions import Sessions
from kvplan.workloads.sharing import PrefixRule


@pytest.mark.parametrize(("ttl", "think"), [(300.0, 60.0), (30.0, 60.0), (5.0, 600.0)])
def test_pauses_end_with_the_next_turn_or_with_the_limit(ttl: float, think: float) -> None:
    random, count = Random(5), 200_000  # noqa: S311  no secret
    pauses = [random.expovariate(1 / think) for _ in range(count)]
    found = Retention(ttl, think)
    drawn = math.fsum(min(pause, ttl) for pause in pauses) / count
    assert found.until_next_s == pytest.approx(drawn, rel=0.02)
    in_time = sum(pause <= ttl for pause in pauses) / count
    assert found.found == pytest.approx(in_time, abs=0.005)


def test_a_last_turn_is_kept_in_vain_for_all_of_its_time() -> None:
    rule = Retention(300.0, 60.0, {(100, 10): 1.0, (50, 10): 0.25})
    assert rule.kept_s(100, 10) == 300.0
    assert rule.kept_s(50, 10) == pytest.approx(0.25 * 300 + 0.75 * rule.until_next_s)
    assert rule.kept_s(7, 10) == rule.until_next_s


def test_nobody_thinks_no_time() -> None:
    assert Retention(300.0, 0.0).until_next_s == 0.0
    assert Retention(300.0, 0.0).found == 1.0
    with pytest.raises(UsageError, match="above 0"):
        Retention(0.0, 10.0)


def test_the_last_turns_of_conversations_are_known() -> None:
    pairs, last = Sessions(Fixed(4), Fixed(100), Fixed(50)).turns_of()
    assert sorted(pair[:2] for pair in pairs) == [(100, 50), (250, 50), (400, 50), (550, 50)]
    assert last == {(550, 50): 1.0}


def test_kept_tokens_count_like_steps_at_full_length() -> None:
    found = seen(((10, 5, 1.0),), step=1, life=Life(kept=lambda *_: 20.0))
    shares = dict(found.tokens)
    assert found.steps == 25
    assert found.kept_steps == 20
    assert shares[15] == pytest.approx(21 / 25)
    assert shares[11] == pytest.approx(1 / 25)


def test_a_user_holds_blocks_while_thinking_but_never_longer_than_a_cycle() -> None:
    """10 s of answer, 30 s of thought, of which 12 s are kept: 22 of 40 s."""
    stream = Stream(Demand(users=100, think_s=30.0), life_s=22.0, kept_s=12.0)
    assert stream.users_share == pytest.approx(22 / 40)
    assert stream.rate_per_s == pytest.approx(100 / 40)


def test_last_turns_are_known_by_their_new_lengths_too() -> None:
    rule = Retention(300.0, 60.0, {(100, 10): 1.0, (50, 10): 0.0})
    before = ((100, 10, 1.0), (50, 10, 3.0))
    longer = rule.over(before, ((150, 10, 1.0), (100, 10, 3.0)))
    assert longer.last == {(150, 10): 1.0, (100, 10): 0.0}
    # Both are cut to the same length: one in four has no next turn.
    assert rule.over(before, ((32, 10, 1.0), (32, 10, 3.0))).last == {(32, 10): 0.25}


@pytest.mark.parametrize("in_front", [True, False])
def test_a_prefix_changes_nothing_of_how_long_sessions_are_kept(*, in_front: bool) -> None:
    pairs, last = Sessions(Fixed(3), Fixed(600), Fixed(50)).turns_of()
    service = Service(decode_tokens_per_s=20.0)
    kept = Retention(300.0, 60.0, last)
    prefix = PrefixRule("system", 512, share=0.5)
    plain = Traffic(pairs, retention=kept)
    shared = Traffic(pairs, prefix=prefix, prefix_in_front=in_front, retention=kept)
    prepared = api.prepare(
        api.read_spec("Qwen/Qwen3-8B", offline=True), find_gpus("H100")[0], kv_budget=(2**33,)
    )
    steps, kept_steps = (
        tuple(getattr(measure(prepared, 32_768, one, service), name) for one in (plain, shared))
        for name in ("steps", "kept_steps")
    )
    assert steps[0] == pytest.approx(steps[1])
    assert kept_steps[0] == pytest.approx(kept_steps[1])
    # 2 of 3 turns are followed by another one.
    mean_s = (2 * kept.until_next_s + 300) / 3
    assert kept_steps[0] == pytest.approx(20 * mean_s)


def test_cut_outputs_keep_their_last_turns() -> None:
    pairs, last = Sessions(Fixed(2), Fixed(100), Fixed(50)).turns_of()
    taken, _ = Traffic(pairs, retention=Retention(300.0, 60.0, last)).within(290)
    assert taken.retention is not None
    assert taken.retention.kept_s(250, 40) == 300.0
