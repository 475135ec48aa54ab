"""Every byte of one GPU as a named line. Reports, exports and comparisons read only this."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, model_validator

from kvplan.formula import compile_formula

Section = Literal["budget", "pool", "outside", "free"]
Confidence = Literal["exact", "derived", "calibrated", "assumed"]

SECTIONS: dict[Section, str] = {
    "budget": "taken from the engine's budget before the cache",
    "pool": "the KV cache",
    "outside": "memory the engine's budget does not count",
    "free": "left over",
}


class LedgerLine(BaseModel):
    """One part of a GPU's memory.

    Attributes:
        name: Dotted, from the general to the particular: ``weights.attention``.
        bytes: The value; what ``formula`` gives for ``inputs``.
        low, high: The interval that contains the value; equal to it where it is exact.
        inputs: Numbers by name, all finite. Integers are exact.
        source: Where the formula or its constants come from.
        confidence: ``exact`` (arithmetic on stated facts), ``derived`` (arithmetic that
            rests on a stated approximation), ``calibrated`` (fitted to measured starts),
            ``assumed`` (nobody stated it).
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False
    )

    name: str
    section: Section
    bytes: int
    low: int
    high: int
    formula: str
    inputs: dict[str, int | float]
    source: str
    confidence: Confidence

    @model_validator(mode="after")
    def _interval_holds_value(self) -> Self:
        if not self.low <= self.bytes <= self.high:
            raise ValueError(f"{self.name}: {self.bytes} is outside [{self.low}, {self.high}]")
        return self

    def explain(self) -> str:
        """The formula with the numbers filled in."""
        return compile_formula(self.formula).render(self.inputs)


@dataclass(frozen=True, slots=True)
class Draft:
    """A line before it is computed: cheap to make, and to ask for its value alone.

    Attributes:
        low, high: Inputs that take other values at the ends of the interval. Where they are
            empty the value is certain.
    """

    name: str
    section: Section
    formula: str
    inputs: Mapping[str, int | float]
    source: str
    confidence: Confidence
    low: Mapping[str, int | float] = field(default_factory=dict)
    high: Mapping[str, int | float] = field(default_factory=dict)

    def value(self, end: Mapping[str, int | float] | None = None) -> int:
        """Bytes by the formula, with some inputs at an end of their range."""
        inputs = {**self.inputs, **end} if end else self.inputs
        return compile_formula(self.formula).evaluate_bytes(inputs)

    def line(self) -> LedgerLine:
        """The computed line."""
        return LedgerLine(
            name=self.name,
            section=self.section,
            bytes=self.value(),
            low=self.value(self.low),
            high=self.value(self.high),
            formula=self.formula,
            inputs=dict(self.inputs),
            source=self.source,
            confidence=self.confidence,
        )


def ledger_line(
    name: str,
    section: Section,
    formula: str,
    inputs: Mapping[str, int | float],
    *,
    source: str,
    confidence: Confidence,
    low: int | None = None,
    high: int | None = None,
) -> LedgerLine:
    """Computes a line from its formula; low and high default to the value itself."""
    value = compile_formula(formula).evaluate_bytes(inputs)
    return LedgerLine(
        name=name,
        section=section,
        bytes=value,
        low=value if low is None else low,
        high=value if high is None else high,
        formula=formula,
        inputs=dict(inputs),
        source=source,
        confidence=confidence,
    )


def total(lines: tuple[LedgerLine, ...], *sections: Section) -> int:
    """Sum of the lines in ``sections`` (all of them if none is named), in bytes."""
    return sum(line.bytes for line in lines if not sections or line.section in sections)
