"""What is seen at a server, against lives walked through step by step."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvplan.errors import UsageError
from kvplan.planning.traffic.seen import Life, seen, units_of

PAIRS = st.lists(
    st.tuples(st.integers(1, 200), st.integers(1, 60), st.floats(0.01, 5)), min_size=1, max_size=8
)


@given(PAIRS, st.integers(1, 20), st.sampled_from([0.0, 0.01, 0.5]))
def test_every_step_of_every_life_counts_once(
    pairs: list[tuple[int, int, float]], step: int, prompt_steps: float
) -> None:
    walked: dict[int, float] = {}
    for prompt, output, share in pairs:
        for tokens in range(1, prompt + output + 1):
            weight = share * (prompt_steps if tokens <= prompt else 1.0)
            cell = math.ceil(tokens / step) * step
            walked[cell] = walked.get(cell, 0.0) + weight
    whole = math.fsum(walked.values())
    found = seen(pairs, step=step, life=Life(prompt=prompt_steps))
    assert dict(found.tokens) == pytest.approx(
        {cell: weight / whole for cell, weight in walked.items() if weight}, abs=1e-9
    )
    assert found.steps == pytest.approx(whole / math.fsum(share for *_, share in pairs))


def test_long_requests_are_seen_more_often() -> None:
    found = seen([(10, 1, 1.0), (1000, 9, 1.0)], step=1)
    assert math.fsum(share for tokens, share in found.tokens if tokens > 500) == pytest.approx(0.9)


def test_a_long_context_is_rounded_up_to_a_wider_step() -> None:
    found = seen([(1_000_000, 1000, 1.0)], step=1)
    assert all(tokens % 62 == 0 for tokens, _ in found.tokens)
    assert math.fsum(t * share for t, share in found.tokens) == pytest.approx(1_000_531, rel=1e-4)


def test_no_request_is_an_error() -> None:
    with pytest.raises(UsageError, match="no request"):
        seen([], step=16)


def test_units_of_several_pools() -> None:
    wide, narrow = units_of([(16, 0.25), (64, 0.75)], lambda t: (t // 16, min(t // 16, 2)), 2)
    assert wide.atoms == ((1, 0.25), (4, 0.75))
    assert (narrow.mean, narrow.least, narrow.most) == (1.75, 1, 2)
    assert wide.variance == pytest.approx(0.25 * 0.75 * 9)
