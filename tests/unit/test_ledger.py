"""Ledger lines: the formula is the value, now and after a way through JSON."""

from __future__ import annotations

import json
import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from kvplan.errors import InputError, InternalError
from kvplan.formula import compile_formula
from kvplan.ledger import SECTIONS, Draft, LedgerLine, Section, ledger_line, total


def line(name: str = "kv_cache", section: Section = "pool", count: int = 7) -> LedgerLine:
    return ledger_line(
        name,
        section,
        "blocks * bytes_per_block",
        {"blocks": count, "bytes_per_block": 2},
        source="arithmetic",
        confidence="exact",
    )


def test_a_line_is_what_its_formula_gives() -> None:
    made = line()
    assert made.model_dump() == {
        "name": "kv_cache",
        "section": "pool",
        "bytes": 14,
        "low": 14,
        "high": 14,
        "formula": "blocks * bytes_per_block",
        "inputs": {"blocks": 7, "bytes_per_block": 2},
        "source": "arithmetic",
        "confidence": "exact",
    }
    assert made.explain() == "7 * 2"


@pytest.mark.parametrize(("low", "high"), [(10, 20), (14, 14), (0, 14), (14, 99)])
def test_an_interval_holds_its_value(low: int, high: int) -> None:
    made = ledger_line(
        "x", "budget", "a", {"a": 14}, source="s", confidence="calibrated", low=low, high=high
    )
    assert (made.low, made.bytes, made.high) == (low, 14, high)


@pytest.mark.parametrize(("low", "high"), [(15, 20), (10, 13), (20, 10)])
def test_an_interval_that_misses_its_value_is_refused(low: int, high: int) -> None:
    with pytest.raises(ValidationError, match=re.escape(f"weights: 14 is outside [{low}, {high}]")):
        ledger_line(
            "weights", "budget", "a", {"a": 14}, source="", confidence="assumed", low=low, high=high
        )


def test_one_end_alone_leaves_the_other_at_the_value() -> None:
    below = ledger_line("x", "free", "a", {"a": 5}, source="", confidence="assumed", low=3)
    above = ledger_line("x", "free", "a", {"a": 5}, source="", confidence="assumed", high=8)
    assert (below.low, below.high) == (3, 5)
    assert (above.low, above.high) == (5, 8)


def test_bytes_are_whole() -> None:
    with pytest.raises(InternalError, match="not whole bytes"):
        ledger_line("x", "free", "a / 2", {"a": 5}, source="", confidence="exact")


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_inputs_are_finite_so_that_json_can_hold_them(value: float) -> None:
    with pytest.raises(ValidationError):
        ledger_line("x", "free", "a", {"a": 1, "unused": value}, source="",
                    confidence="exact")  # fmt: skip


whole = st.integers(-(2**60), 2**60)
real = st.floats(-1e15, 1e15)


@given(whole, whole, real, real)
def test_json_computes_the_bytes_it_states(a: int, b: int, share: float, part: float) -> None:
    made = ledger_line(
        "weights.attention",
        "budget",
        "ceil(a * share) + floor(max(a, b) / 3) - b // 7 + ceil(part / 2)",
        {"a": a, "b": b, "share": share, "part": part},
        source="a test",
        confidence="derived",
        low=-(2**120),
        high=2**120,
    )
    read = json.loads(made.model_dump_json())
    assert compile_formula(read["formula"]).evaluate_bytes(read["inputs"]) == read["bytes"]
    assert compile_formula(made.explain()).evaluate_bytes({}) == made.bytes
    assert LedgerLine.model_validate_json(made.model_dump_json()) == made
    assert json.loads(json.dumps(made.model_dump(mode="json"))) == read


@given(st.integers(2**53, 2**60), st.floats(1, 2**60))
def test_whole_inputs_stay_whole_and_floats_stay_floats(count: int, size: float) -> None:
    made = ledger_line(
        "x", "free", "count", {"count": count, "size": size}, source="", confidence="exact"
    )
    read = LedgerLine.model_validate_json(made.model_dump_json())
    assert {name: type(value) for name, value in read.inputs.items()} == {
        "count": int,
        "size": float,
    }


def test_a_line_does_not_change() -> None:
    made = line()
    with pytest.raises(ValidationError):
        made.bytes = 15  # type: ignore[misc]


def test_the_inputs_are_the_lines_own() -> None:
    inputs: dict[str, int | float] = {"a": 5}
    made = ledger_line("x", "free", "a", inputs, source="", confidence="exact")
    inputs["a"] = 6
    assert made.inputs == {"a": 5}


@pytest.mark.parametrize("field", ["section", "confidence"])
def test_sections_and_confidences_are_the_contracts(field: str) -> None:
    stated = line().model_dump() | {field: "other"}
    with pytest.raises(ValidationError):
        LedgerLine.model_validate(stated)


def test_unknown_fields_are_refused() -> None:
    with pytest.raises(ValidationError):
        LedgerLine.model_validate(line().model_dump() | {"gib": 1.5})


def test_a_hostile_formula_from_a_file_is_refused_when_it_is_explained() -> None:
    stated = line().model_dump() | {"formula": "__import__('os')"}
    with pytest.raises(InputError):
        LedgerLine.model_validate(stated).explain()


def test_every_section_has_a_meaning() -> None:
    assert SECTIONS == {
        "budget": "taken from the engine's budget before the cache",
        "pool": "the KV cache",
        "outside": "memory the engine's budget does not count",
        "free": "left over",
    }


FITTED = Draft(
    name="activation_peak",
    section="outside",
    formula="ceil(tokens * layer_bytes)",
    inputs={"tokens": 8192, "layer_bytes": 6.0},
    source="a fit",
    confidence="calibrated",
    low={"layer_bytes": 3.0},
    high={"layer_bytes": 9.5},
)


def test_a_draft_is_computed_at_its_value_and_at_the_ends_of_its_range() -> None:
    assert FITTED.value() == 49_152
    assert FITTED.value({"layer_bytes": 1.0}) == 8_192
    assert FITTED.line().model_dump() == {
        "name": "activation_peak",
        "section": "outside",
        "bytes": 49_152,
        "low": 24_576,
        "high": 77_824,
        "formula": "ceil(tokens * layer_bytes)",
        "inputs": {"tokens": 8192, "layer_bytes": 6.0},
        "source": "a fit",
        "confidence": "calibrated",
    }


def test_a_draft_without_a_range_is_certain() -> None:
    line = Draft("x", "free", "a * 2", {"a": 7}, "arithmetic", "exact").line()
    assert (line.low, line.bytes, line.high) == (14, 14, 14)


def test_a_draft_does_not_change() -> None:
    with pytest.raises(AttributeError):
        FITTED.name = "other"  # type: ignore[misc]
    assert Draft(**{name: getattr(FITTED, name) for name in Draft.__slots__}) == FITTED


def test_totals_by_section() -> None:
    lines = (
        line("a", "budget", 1),
        line("b", "budget", 2),
        line("c", "pool", 4),
        line("d", "free", 8),
    )
    assert total(lines) == 2 * (1 + 2 + 4 + 8)
    assert total(lines, "budget") == 2 * (1 + 2)
    assert total(lines, "budget", "free") == 2 * (1 + 2 + 8)
    assert total(lines, "outside") == 0
    assert total(()) == 0
