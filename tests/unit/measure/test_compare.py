"""How a measured figure stands to a planned one."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from hypothesis import given
from hypothesis import strategies as st
from small_models import small_model

from kvplan import api
from kvplan.measure.compare import Terms, compare, outcome
from kvplan.measure.job import job_of
from kvplan.measure.pool import PoolResult
from kvplan.measure.run import Forward, Measured

TERMS = Terms(tolerance=0.05, floor=100, context=None, real_device=True)


@pytest.mark.parametrize(
    ("measured", "expected"),
    [
        (None, "not_measured"),
        (10_500, "close"),
        (9_500, "close"),
        (10_501, "within_range"),
        (12_001, "off"),
        (8_000, "within_range"),
        (7_999, "off"),
    ],
)
def test_outcomes(measured: int | None, expected: str) -> None:
    assert outcome(10_000, (8_000, 12_000), measured, TERMS) == expected


@given(st.integers(0, 2**40), st.integers(-100, 100))
def test_the_floor_forgives_small_differences(planned: int, difference: int) -> None:
    assert outcome(planned, (planned, planned), planned + difference, TERMS) == "close"


def measured_as_planned() -> Measured:
    """Figures of a device, made up."""
    return Measured(
        device="card",
        total=4 * 2**30,
        free_before=3 * 2**30,
        weights={},
        weights_allocated=0,
        forward=Forward(layer_step=10, logits=20, workspace=0, reserved=0, stand_in=0),
        non_torch=7,
        pool=PoolResult(groups=(), allocated=0, exhausted=True, beyond=0),
    )


def test_a_pool_that_ran_out_is_off_and_said() -> None:
    model = small_model("GQA")
    plan = api.size(
        model,
        "custom:4GiB",
        context=64,
        engine_options={"max_num_batched_tokens": 48, "max_num_seqs": 4},
        advice=False,
    )
    job = job_of(plan, model)
    comparison = compare(plan, job, measured_as_planned(), TERMS, ("said",))
    lines = {line.name: line for line in comparison.lines}
    assert lines["kv_cache"].outcome == "off"
    assert lines["kv_cache"].note == "memory ran out"
    assert lines["non_torch"].measured == 7
    assert lines["cuda_graphs"].outcome == "not_measured"
    assert lines["device_total"].outcome == "close"
    assert not comparison.agrees
    assert comparison.remarks == ("said",)
    assert str(comparison.record.outcome).startswith("error:")
