"""The text of a measurement."""

from __future__ import annotations

import pytest

from kvplan.measured_plan import MeasuredLine, MeasuredPlan, Outcome
from kvplan.measurement import Measurement
from kvplan.reports.measured_text import measured_text


def line(name: str, outcome: Outcome, measured: int | None, note: str = "") -> MeasuredLine:
    """A line of 1 GiB with a range of a half."""
    return MeasuredLine(
        name=name,
        planned=2**30,
        low=2**29,
        high=3 * 2**29,
        measured=measured,
        outcome=outcome,
        note=note,
    )


def measured(*lines: MeasuredLine) -> MeasuredPlan:
    """A measurement of these lines."""
    return MeasuredPlan(
        model="org/model",
        device="card",
        layers=2,
        layers_planned=4,
        tolerance=0.05,
        floor_bytes=0,
        lines=lines,
        figures={"logits_peak": 3 * 2**20},
        remarks=("Only 2 of 4.",),
        record=Measurement(id="a"),
    )


CLOSE = line("kv_cache", "close", 2**30)
OFF = line("non_torch", "off", 3 * 2**30, "why")
UNKNOWN = line("nccl", "not_measured", None, "one process")


@pytest.mark.parametrize(
    ("lines", "verdict", "agrees"),
    [
        ((CLOSE, UNKNOWN), "all 1 measured lines agree with the plan.", True),
        ((CLOSE, OFF, UNKNOWN), "1 of 2 measured lines is off: non_torch.", False),
        ((UNKNOWN,), "nothing could be measured.", False),
        ((), "nothing could be measured.", False),
    ],
)
def test_verdict(lines: tuple[MeasuredLine, ...], verdict: str, agrees: bool) -> None:  # noqa: FBT001
    found = measured(*lines)
    assert found.agrees is agrees
    text = measured_text(found, width=100, color=False)
    assert text.splitlines()[0] == f"org/model on card: {verdict}"


def test_every_line_with_its_note() -> None:
    text = measured_text(measured(CLOSE, OFF, UNKNOWN), width=100, color=False, ascii_only=True)
    assert text.isascii()
    rows = {row.split()[0]: row for row in text.splitlines() if row.strip()}
    assert "off: why" in rows["non_torch"]
    assert rows["non_torch"].endswith("+2.00 GiB")
    assert rows["kv_cache"].endswith("0 B")
    assert "not measured: one process" in rows["nccl"]
    assert "logits peak: 3 MiB" in text
    assert "Only 2 of 4." in text


def test_json_names_its_schema() -> None:
    assert measured(CLOSE).model_dump(mode="json")["schema"] == "kvplan.measured/1"
