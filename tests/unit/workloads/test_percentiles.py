"""Percentiles give the lognormal back that they are of."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvplan.errors import UsageError
from kvplan.workloads.distributions import Lognormal
from kvplan.workloads.percentiles import fit


@given(st.floats(10, 1e5), st.floats(0.05, 2.5))
def test_percentiles_of_a_lognormal_give_it_back(median: float, sigma: float) -> None:
    law = Lognormal(median, sigma)
    stated = {share: round(law.quantile(share) * 1000) for share in (0.5, 0.95, 0.99)}
    found = fit(stated)
    assert found.law.median / 1000 == pytest.approx(median, rel=1e-3)
    assert found.law.sigma == pytest.approx(sigma, rel=1e-2, abs=1e-3)
    assert found.worst < 1e-2


def test_two_percentiles_are_met_and_three_only_nearly() -> None:
    assert fit({0.5: 300, 0.95: 1000}).worst == pytest.approx(0, abs=1e-9)
    three = fit({0.5: 1024, 0.95: 8192, 0.99: 32_768})
    assert three.law.median == pytest.approx(956.2, abs=0.1)
    assert three.law.sigma == pytest.approx(1.448, abs=1e-3)
    assert three.worst == pytest.approx(10351.5 / 8192 - 1, abs=1e-4)
    assert math.isfinite(three.worst)


@pytest.mark.parametrize(
    ("stated", "word"),
    [
        ({0.5: 10}, "One percentile"),
        ({0.5: 10, 1.0: 20}, "no percentile"),
        ({0.5: 0, 0.9: 20}, "no percentile"),
        ({0.5: 20, 0.9: 10}, "less than"),
    ],
)
def test_what_is_no_set_of_percentiles(stated: dict[float, int], word: str) -> None:
    with pytest.raises(UsageError, match=word):
        fit(stated)
