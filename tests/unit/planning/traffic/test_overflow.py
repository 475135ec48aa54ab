"""The risk of too many units, against convolutions done term by term."""

from __future__ import annotations

import math
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvplan.planning.traffic import overflow
from kvplan.planning.traffic.fourier import transform
from kvplan.planning.traffic.overflow import grid_for
from kvplan.planning.traffic.populations import Constant, Poisson, Population, Users
from kvplan.planning.traffic.seen import Units

Law = dict[int, float]


def units(parts: Iterable[tuple[int, float]]) -> Units:
    """Units with shares of any scale."""
    law: Law = {}
    for count, share in parts:
        law[count] = law.get(count, 0.0) + share
    whole = math.fsum(law.values())
    return Units(tuple(sorted((count, share / whole) for count, share in law.items())))


def convolved(law: Units, count: int) -> Law:
    """The sum of so many, term by term."""
    total: Law = {0: 1.0}
    for _ in range(count):
        after: Law = {}
        for held, share in total.items():
            for more, part in law.atoms:
                after[held + more] = after.get(held + more, 0.0) + share * part
        total = after
    return total


def chances(population: Population) -> list[float]:
    """How likely there are 0, 1, 2, … requests, from the textbook."""
    if isinstance(population, Constant):
        return [0.0] * population.requests + [1.0]
    if isinstance(population, Users):
        n, p = population.users, population.share
        return [math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)]
    mean = population.mean
    return [math.exp(-mean) * mean**k / math.factorial(k) for k in range(24)]


def above(law: Units, population: Population, most: int) -> float:
    """The risk, term by term."""
    return math.fsum(
        chance * math.fsum(share for held, share in convolved(law, count).items() if held > most)
        for count, chance in enumerate(chances(population))
        if chance
    )


LAWS = st.lists(st.tuples(st.integers(0, 12), st.floats(0.01, 1)), min_size=1, max_size=4).map(
    units
)
POPULATIONS = st.one_of(
    st.integers(1, 8).map(Constant),
    st.floats(0.01, 2).map(Poisson),
    st.builds(Users, st.integers(1, 8), st.floats(0.01, 0.99)),
)


@settings(max_examples=40)
@given(LAWS, POPULATIONS, st.integers(0, 100))
def test_the_risk_is_that_of_the_convolution(law: Units, population: Population, most: int) -> None:
    found = grid_for(law, population).risk(population, most)
    assert found == pytest.approx(above(law, population, most), abs=1e-9)


@given(LAWS, POPULATIONS, st.integers(0, 60))
def test_more_units_are_never_a_higher_risk(law: Units, population: Population, most: int) -> None:
    grid = grid_for(law, population)
    assert grid.risk(population, most + 1) <= grid.risk(population, most) + 1e-9


def test_wider_cells_cost_little_and_err_upwards(monkeypatch: pytest.MonkeyPatch) -> None:
    law = units((count, 1.0) for count in range(50, 451))
    population = Constant(100)
    most = round(250 * 100 + 3 * 115.5 * 10)
    exact = grid_for(law, population).risk(population, most)
    monkeypatch.setattr(overflow, "CELLS", 2048)
    coarse = grid_for(law, population)
    assert coarse.width > 10
    assert coarse.risk(population, most) == pytest.approx(exact, rel=0.1)
    assert exact == pytest.approx(0.00135, rel=0.15)


def test_less_than_no_unit_always_overflows() -> None:
    law = units([(5, 1.0)])
    assert grid_for(law, Constant(3)).risk(Constant(3), 14) == 1.0
    assert grid_for(law, Constant(3)).risk(Constant(3), 15) == 0.0


@pytest.mark.parametrize("population", [Poisson(3.5), Users(30, 0.25), Constant(9)])
def test_too_many_requests(population: Population) -> None:
    for most in (0, 5, 8, 9, 12):
        expected = math.fsum(chances(population)[most + 1 :])
        assert population.above(most) == pytest.approx(expected, abs=1e-9)
    assert population.above(10**9) == 0.0


def test_the_transform_is_the_sum_it_stands_for() -> None:
    values = [0.5, 0.25, 0.0, 0.125, 0.1, 0.0, 0.0, 0.025]
    for frequency, found in enumerate(transform(values)):
        direct = sum(
            value * complex(math.cos(angle), -math.sin(angle))
            for place, value in enumerate(values)
            for angle in (2 * math.pi * frequency * place / 8,)
        )
        assert found == pytest.approx(direct)
