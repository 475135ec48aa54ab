"""Records of starts, and what is known about them besides."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

NOTES = Path(__file__).parents[1] / "records" / "engine_starts.yaml"
Row = dict[str, Any]
Ask = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Notes:
    """What `records/engine_starts.yaml` says of one file of records."""

    pools: Mapping[str, Ask] = field(default_factory=dict)
    starts: Mapping[str, Ask] = field(default_factory=dict)
    causes: Mapping[str, str] = field(default_factory=dict)
    not_started: Mapping[str, str] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Compared:
    """A figure that a log states, and kvplan's.

    Attributes:
        exact: They agree within the print's rounding; None where that is not the question.
        low, high: kvplan's own range, where it gives one.
    """

    id: str
    what: str
    measured: float
    predicted: float
    exact: bool | None = None
    low: float | None = None
    high: float | None = None

    @property
    def error(self) -> float:
        """Relative to what was measured."""
        return self.predicted / self.measured - 1 if self.measured else 0.0


@dataclass(frozen=True, slots=True)
class Report:
    """One file of records, compared.

    Attributes:
        not_started: Why the tokens of a row with a known pool can't be told from its flags.
        left_out: Reasons by id, of every row that is in neither comparison.
    """

    rows: int
    pools: tuple[Compared, ...]
    starts: tuple[Compared, ...]
    causes: Mapping[str, str]
    not_started: Mapping[str, str]
    left_out: Mapping[str, str]


def read_rows(path: Path) -> tuple[Row, ...]:
    """One start a line."""
    with path.open(encoding="utf-8") as lines:
        return tuple(_parsed(lines))


def _parsed(lines: Iterator[str]) -> Iterator[Row]:
    for line in lines:
        if line.strip():
            yield json.loads(line)


def read_notes(name: str) -> Notes:
    """The notes of one file of records."""
    every = yaml.safe_load(NOTES.read_text(encoding="utf-8"))
    return Notes(**every.get(name, {}))


def name_of(row: Row) -> str:
    """The model as the record has it."""
    named = row.get("model") or row.get("model_inferred") or "not named"
    return str(named)


def flags_of(row: Row) -> dict[str, Any]:
    """Flags that a log states."""
    return dict(row.get("flags") or {})


def is_independent(row: Row) -> bool:
    """Whether the geometry is known from outside the printed bytes."""
    return bool((row.get("formula") or {}).get("independent"))


def why_not(row: Row) -> str:
    """What a row lacks for any comparison, by its fields."""
    if "estimate" in str(row.get("measurement")):
        return "an estimate of the scheduler, no allocation"
    if not (row.get("kv_size") or row.get("k_size")):
        return "no size of the cache"
    if not (row.get("model") or row.get("model_inferred")):
        return "no model named"
    if not is_independent(row):
        return "the model is a reading of the printed bytes"
    return "no bundled model of that geometry"
