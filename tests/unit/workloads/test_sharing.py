"""Isolation of tenants, versions, and hit rates against counted streams."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvplan.errors import UsageError
from kvplan.workloads.arrivals import Arrivals
from kvplan.workloads.sharing import PrefixRule, Scope


@given(
    scope=st.sampled_from(["tenant", "global"]),
    personal=st.booleans(),
    one=st.integers(0, 50),
    other=st.integers(0, 50),
    time_s=st.floats(0, 1e6),
)
def test_tenants_share_only_what_is_declared_global(
    *, scope: Scope, personal: bool, one: int, other: int, time_s: float
) -> None:
    if personal and scope == "global":
        with pytest.raises(UsageError, match="personal"):
            PrefixRule("p", 10, scope=scope, personal=personal)
        return
    rule = PrefixRule("p", 10, scope=scope, personal=personal, tenants=51)
    same = rule.use(time_s, one).id == rule.use(time_s, other).id
    assert same == (one == other or scope == "global")


def test_versions_do_not_share() -> None:
    rule = PrefixRule("p", 10, change_every_s=60)
    assert rule.use(59.9, 0).id != rule.use(60.0, 0).id
    assert rule.versions_alive(6) == pytest.approx(1.1)


@pytest.mark.parametrize(
    ("tenants", "change", "kept"), [(1, None, 2.0), (5, 50.0, None), (4, 30.0, 3.0)]
)
def test_the_hit_rate_is_that_of_a_stream(
    tenants: int, change: float | None, kept: float | None
) -> None:
    rate = 2.0
    rule = PrefixRule("p", 10, tenants=tenants, change_every_s=change)
    random, last, hits, uses = Random(4), dict[str, float](), 0, 60_000  # noqa: S311
    for count, time_s in enumerate(Arrivals(rate).times(random)):
        if count == uses:
            break
        use = rule.draw(time_s, random)
        assert use is not None
        seen = last.get(use.id)
        hits += seen is not None and (kept is None or time_s - seen <= kept)
        last[use.id] = time_s
    assert rule.hit_rate(rate, kept) == pytest.approx(hits / uses, abs=0.02)


@pytest.mark.parametrize(
    "make",
    [
        lambda: PrefixRule("p", 0),
        lambda: PrefixRule("p", 1, share=0),
        lambda: PrefixRule("p", 1, share=1.1),
        lambda: PrefixRule("p", 1, tenants=0),
        lambda: PrefixRule("p", 1, change_every_s=0),
    ],
)
def test_rules_that_make_no_sense(make: object) -> None:
    assert callable(make)
    with pytest.raises(UsageError):
        make()
