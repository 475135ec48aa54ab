"""Host profiles: how far few and many starts move a figure."""

from __future__ import annotations

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from measured_starts import Shelf, record

from kvplan.errors import InputError
from kvplan.host_profile import Factor, HostProfile, Offset
from kvplan.planning.calibrate import Calibration, Observed, calibrate, factor, offset, shrunk

SPREAD = st.floats(0.01, 10)
SHIFT = st.floats(-100, 100)


@given(shift=SHIFT, spread=SPREAD)
def test_one_start_moves_little_ten_move_much(shift: float, spread: float) -> None:
    assert abs(shrunk([shift], spread)) <= 0.25 * abs(shift) + 1e-9
    assert abs(shrunk([shift] * 10, spread)) >= 0.75 * abs(shift) - 1e-9


@given(shift=SHIFT, spread=SPREAD, n=st.integers(1, 50))
def test_more_starts_that_agree_move_more_and_never_beyond_what_they_show(
    shift: float, spread: float, n: int
) -> None:
    fewer, more = shrunk([shift] * n, spread), shrunk([shift] * (n + 1), spread)
    assert abs(fewer) <= abs(more) + 1e-9 <= abs(shift) + 2e-9
    assert fewer * shift >= 0


@given(shift=SHIFT, spread=SPREAD, apart=st.floats(0, 50))
def test_starts_that_disagree_move_no_more_than_those_that_agree(
    shift: float, spread: float, apart: float
) -> None:
    assume(abs(shift) > 1e-6)
    agreeing = shrunk([shift] * 4, spread)
    scattered = shrunk([shift - apart, shift - apart, shift + apart, shift + apart], spread)
    assert abs(scattered) <= abs(agreeing) + 1e-9


@given(offsets=st.lists(SHIFT, min_size=1, max_size=20), spread=SPREAD, wider=st.floats(1, 100))
def test_a_wider_prior_gives_way_no_less(offsets: list[float], spread: float, wider: float) -> None:
    assert abs(shrunk(offsets, spread)) <= abs(shrunk(offsets, spread * wider)) + 1e-9


def test_an_offset_by_hand() -> None:
    parts = [Observed(planned=1.0, spread=0.5, measured=1.4)] * 3
    assert offset(parts) == Offset(gib=0.2, starts=3)


def test_a_factor_by_hand() -> None:
    parts = [Observed(planned=2.0, spread=1.0, measured=4.0)] * 3
    assert factor(parts) == Factor(value=round(math.sqrt(2), 4), starts=3)


def test_a_part_of_nothing_says_nothing_of_a_factor() -> None:
    assert factor([Observed(planned=0.0, spread=0.1, measured=1.0)]) == Factor()
    assert factor([Observed(planned=1.0, spread=0.1, measured=0.001)]) == Factor()


def learned(*records: object) -> Calibration:
    return calibrate(records, Shelf(), name="host profile test.yaml")  # type: ignore[arg-type]


STATED = {
    "gpu": "H100",
    "tp": 1,
    "gpu_memory_utilization": 0.9,
    "engine_version": "0.30.0",
    "max_model_len": 4096,
}


def test_logged_parts_become_factors_and_an_offset() -> None:
    found = learned(record(id="a", **STATED, activation_peak_gib=9.0, non_torch_gib=1.5))
    profile = found.profile
    assert found.used == ("a",)
    assert (profile.starts, profile.gpus, profile.versions) == (1, ("H100-SXM-80GB",), ("0.30.0",))
    assert profile.activation.value > 1
    assert profile.activation.starts == profile.non_torch.starts == 1
    assert 0 < profile.non_torch.gib < 1.5


def test_starts_of_the_same_name_are_several_and_the_same_start_is_one() -> None:
    one = record(id="serve.log:1", **STATED, non_torch_gib=1.5)
    other = record(id="serve.log:1", **STATED, non_torch_gib=1.6)
    assert learned(one, other, one).used == ("serve.log:1", "serve.log:1")
    assert learned(one, other, one).profile.starts == 2


@pytest.mark.parametrize("device", ["cpu", "fake"])
def test_counts_of_tensors_are_skipped(device: str) -> None:
    counted = record(id="b", **STATED, non_torch_gib=1.5, measured_on=device)
    found = learned(record(id="a", **STATED, non_torch_gib=1.5), counted)
    assert found.used == ("a",)
    assert found.skipped[0][1].startswith(f"it was counted on {device}, which says nothing")


def test_a_cache_smaller_than_planned_is_put_down_to_what_was_not_logged() -> None:
    less = learned(record(id="a", **STATED, available_kv_gib=60.0)).profile
    more = learned(record(id="a", **STATED, available_kv_gib=70.9)).profile
    assert less.activation.value > more.activation.value
    assert less.non_torch.gib > more.non_torch.gib
    assert less.weights == more.weights == Factor()


def test_a_cache_of_an_assumed_utilization_says_nothing() -> None:
    assumed = record(id="a", **STATED, available_kv_gib=60.0, gpu_memory_utilization_assumed=True)
    found = learned(assumed).profile
    assert (found.activation, found.non_torch) == (Factor(), Offset())


def test_what_is_of_no_use_is_skipped_with_its_reason() -> None:
    found = learned(
        record(id="a", **STATED, non_torch_gib=1.5), record(id="b", model="strange", **STATED)
    )
    assert [name for name, _ in found.skipped] == ["b"]
    assert isinstance(found.profile, HostProfile)


def test_no_records_at_all() -> None:
    with pytest.raises(InputError) as raised:
        learned()
    assert raised.value.hint is not None
    assert "There is no record" in raised.value.hint


def test_a_start_of_no_known_release_is_skipped() -> None:
    """Constants of releases differ by more than hosts do: nothing is guessed."""
    unknown = {**STATED, "engine_version": None}
    found = learned(
        record(id="a", **STATED, non_torch_gib=1.5), record(id="b", **unknown, non_torch_gib=1.5)
    )
    assert found.used == ("a",)
    assert found.skipped[0][1].startswith("engine_version is not stated")
