"""MeasuredPlan: a plan's lines beside what was measured, per GPU, in bytes."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from kvplan._version import __version__
from kvplan.measurement import Measurement

Outcome = Literal["close", "within_range", "off", "not_measured"]


class MeasuredLine(BaseModel):
    """One line of the ledger and what was found for it.

    Attributes:
        name: The ledger's own, or ``device_total`` or ``free_beside_pool``.
        planned, low, high: Bytes by the plan. Where fewer layers were measured than planned,
            those of the measured layers.
        measured: Bytes found, or None.
        outcome: ``close`` within the tolerance, ``within_range`` only within the line's own range,
            ``off`` neither, ``not_measured`` nothing was found.
        note: Why nothing was found, or what a reader has to know.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    name: str
    planned: int
    low: int
    high: int
    measured: int | None
    outcome: Outcome
    note: str = ""

    @property
    def off_by(self) -> int | None:
        """Measured less planned, in bytes."""
        return None if self.measured is None else self.measured - self.planned


class MeasuredPlan(BaseModel):
    """What a measurement says of a plan.

    Attributes:
        device: What was measured: the device's name, ``cpu`` or ``fake``.
        layers, layers_planned: Layers that were allocated, and those of the planned rank.
        tolerance: Share of a line's bytes that it may be off by.
        floor_bytes: Bytes that any line may be off by, however small it is.
        figures: Other byte counts by name: peaks, reserved and free memory.
        remarks: Sentences on what was left out or scaled.
        record: The same as one measurement record.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True, extra="forbid", populate_by_name=True, serialize_by_alias=True
    )

    schema_: Literal["kvplan.measured/1"] = Field("kvplan.measured/1", alias="schema")
    kvplan_version: str = __version__
    model: str
    device: str
    layers: int
    layers_planned: int
    tolerance: float
    floor_bytes: int
    lines: tuple[MeasuredLine, ...]
    figures: dict[str, int]
    remarks: tuple[str, ...]
    record: Measurement

    @property
    def agrees(self) -> bool:
        """Whether something was measured and nothing was off."""
        outcomes = {line.outcome for line in self.lines}
        return "off" not in outcomes and bool(outcomes - {"not_measured"})
