"""The arithmetic of `validation/runtime_fit`: quantiles, ranges, folds."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

VALIDATION = Path(__file__).parents[2] / "validation"
sys.path.insert(0, str(VALIDATION))

from runtime_fit.conformal import Residual, intervals, quantile  # noqa: E402 - see the path above
from runtime_fit.crossval import folds  # noqa: E402 - same
from runtime_fit.estimate import GIVEN, GIVEN_BY_BAND, START, fit  # noqa: E402 - same
from runtime_fit.samples import Sample, read_samples  # noqa: E402 - same

from kvplan.engines.vllm.calibration import CONSTANTS, bands  # noqa: E402 - same
from kvplan.sources.measurements import read_measurements  # noqa: E402 - same

RECORDS = VALIDATION / "records" / "vllm.jsonl"


@pytest.fixture(scope="module")
def samples() -> list[Sample]:
    return read_samples(read_measurements(str(RECORDS)), None)


def test_a_conformal_quantile_counts_one_more_than_there_are() -> None:
    scores = [(float(score), 1.0) for score in range(1, 20)]
    assert quantile(scores, 0.9) == 18  # 0.9 × 20
    assert quantile(scores[:5], 0.9) == 5  # too few: the largest


def test_weights_count_as_repeated_scores() -> None:
    assert quantile([(1.0, 0.5), (1.0, 0.5), (2.0, 8.0), (3.0, 1.0)], 0.8) == 2


@given(st.lists(st.tuples(st.integers(0, 2), st.floats(-3, 3)), min_size=12, max_size=40))
def test_a_range_holds_at_least_its_level_of_what_it_is_made_of(
    values: list[tuple[int, float]],
) -> None:
    residuals = [Residual(str(i), band, value, 1.0) for i, (band, value) in enumerate(values)]
    if not any(value > 0 for _, value in values) or not any(value < 0 for _, value in values):
        return
    ranges = intervals(residuals, 3)
    held = [-ranges[r.band].low - 1e-9 <= r.value <= ranges[r.band].high + 1e-9 for r in residuals]
    assert sum(held) / len(held) >= 0.9


def test_a_group_stays_in_one_fold_and_every_sample_is_held_once(samples: list[Sample]) -> None:
    held_once: list[str] = []
    for known, held in folds(samples, 0):
        assert not {sample.group for sample in known} & {sample.group for sample in held}
        assert len(known) + len(held) == len(samples)
        held_once += [sample.id for sample in held]
    assert sorted(held_once) == sorted(sample.id for sample in samples)


def test_the_sweep_is_dealt_by_model_and_the_rest_by_source(samples: list[Sample]) -> None:
    groups = {sample.group for sample in samples if sample.is_sweep}
    assert groups == {f"sweep {sample.model}" for sample in samples if sample.is_sweep}
    others = {sample.group for sample in samples if not sample.is_sweep}
    assert all(sample.source.startswith(tuple(others)) for sample in samples if not sample.is_sweep)


def test_without_starts_constants_are_the_first_guess() -> None:
    found = fit([])
    assert len(found) == len(bands()) == len(GIVEN_BY_BAND)
    for constants, own in zip(found, GIVEN_BY_BAND, strict=True):
        assert constants == {**START, **GIVEN, **own}


def test_what_follows_from_the_source_is_not_fitted(samples: list[Sample]) -> None:
    for constants, own in zip(fit(samples), GIVEN_BY_BAND, strict=True):
        assert {**constants, **GIVEN, **own} == constants


def test_a_prediction_is_the_plans_own(samples: list[Sample]) -> None:
    """With the constants in force a sample's lines sum to what the ledger has."""
    constants = [{name: getattr(band, name).value for name in CONSTANTS} for band in bands()]
    for sample in samples:
        own = sum(line.value() for line in sample.lines) / 2**30
        assert sum(sample.values(constants[sample.band]).values()) == pytest.approx(own, abs=1e-6)
