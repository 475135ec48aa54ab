"""Laws of lengths: atoms and draws agree with the closed forms."""

from __future__ import annotations

import math
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvplan.errors import UsageError
from kvplan.workloads.distributions import (
    Distribution,
    Fixed,
    Lognormal,
    Pareto,
    atoms,
    draw,
    histogram,
)

LAWS: dict[str, tuple[Distribution, float]] = {
    "fixed": (Fixed(1000), 1000),
    "lognormal": (Lognormal(1000, 0.9), 1000 * math.exp(0.9**2 / 2)),
    "wide lognormal": (Lognormal(1000, 1.5), 1000 * math.exp(1.5**2 / 2)),
    "pareto": (Pareto(200, 2.5), 200 * 2.5 / 1.5),
    "histogram": (histogram([(10, 3), (20, 1)]), 12.5),
}


@pytest.mark.parametrize("name", LAWS)
def test_atoms_keep_the_mean(name: str) -> None:
    law, mean = LAWS[name]
    found = atoms(law)
    assert math.fsum(share for _, share in found) == pytest.approx(1)
    assert math.fsum(tokens * share for tokens, share in found) == pytest.approx(mean, rel=0.003)


@pytest.mark.parametrize("name", LAWS)
def test_draws_have_the_atoms_mean(name: str) -> None:
    law, mean = LAWS[name]
    random = Random(7)  # noqa: S311
    drawn = [draw(law, random) for _ in range(20_000)]
    spread = math.sqrt(math.fsum((one - mean) ** 2 for one in drawn)) / len(drawn)
    assert abs(math.fsum(drawn) / len(drawn) - mean) <= 4 * spread + 1e-9


def test_what_is_beyond_the_limit_falls_on_it() -> None:
    found = dict(atoms(Lognormal(1000, 1.0), limit=1000))
    assert max(found) == 1000
    assert found[1000] == pytest.approx(0.5, abs=0.01)


@given(
    st.lists(st.tuples(st.integers(0, 10_000), st.floats(0, 1e6)), min_size=1, max_size=30),
    st.floats(0, 1, exclude_max=True),
)
def test_a_histograms_quantile_is_one_of_its_lengths(
    counts: list[tuple[int, float]], share: float
) -> None:
    if not any(count for _, count in counts):
        with pytest.raises(UsageError, match="empty"):
            histogram(counts)
        return
    law = histogram(counts)
    at = law.tokens.index(int(law.quantile(share)))
    assert law.up_to[at] > share
    assert at == 0 or law.up_to[at - 1] <= share


@pytest.mark.parametrize("counts", [[(-1, 1.0)], [(1, -1.0)], [(1, math.inf)], [(1, math.nan)]])
def test_a_histogram_refuses_what_was_never_counted(counts: list[tuple[int, float]]) -> None:
    with pytest.raises(UsageError, match="cannot have"):
        histogram(counts)
