"""A validation as text and JSON."""

from __future__ import annotations

import json
from functools import cache

import pytest
from measured_starts import Shelf, record
from syrupy.assertion import SnapshotAssertion

from kvplan._version import __version__
from kvplan.planning.validate.run import validate
from kvplan.planning.validate.summary import summarise
from kvplan.reports.validation_json import validation_json
from kvplan.reports.validation_text import validation_text
from kvplan.validation import (
    CheckedRecord,
    GeometryCheck,
    KvCheck,
    Validation,
    VerdictCheck,
    WeightsCheck,
)


def _kv(predicted: float, measured: float, cause: str = "none to speak of") -> KvCheck:
    return KvCheck(
        predicted_kv_gib=predicted,
        low_kv_gib=predicted - 1,
        high_kv_gib=predicted + 1,
        measured_kv_gib=measured,
        relative_error=predicted / measured - 1 if measured > 0 else None,
        share_of_card=abs(predicted - measured) / 80,
        in_interval=abs(predicted - measured) <= 1,
        cause=cause,
    )


def _geometry(*, reachable: bool, flag: str | None = None) -> GeometryCheck:
    return GeometryCheck(
        kv_gib=1.0,
        predicted_blocks=16_384,
        predicted_tokens=262_144,
        predicted_concurrency=64.0,
        low_tokens=260_832,
        high_tokens=263_440,
        measured_blocks=None,
        measured_tokens=262_144 if reachable else 131_072,
        measured_concurrency=None,
        within_print_rounding=reachable,
        reachable_with=flag,
        relative_error=0.0 if reachable else 1.0,
    )


def _named(name: str, **changes: object) -> CheckedRecord:
    values = {
        "id": name,
        "source": "log 1",
        "model": "org/model-of-many-words-7B-Instruct",
        "gpu": "H100-SXM-80GB",
        "engine": "vllm==0.19.0",
        "skipped": None,
    }
    return CheckedRecord.model_validate(values | changes)


@cache
def made() -> Validation:
    """One record of each kind."""
    records = (
        _named("close", end_to_end=_kv(50.1, 50.0), overhead=_kv(50.0, 50.0)),
        _named("bold", end_to_end=_kv(55.0, 50.0, "activation peak: 2.00 GiB predicted, 7.00 log")),
        _named("shy", end_to_end=_kv(8.0, 10.0), overhead=_kv(0.5, -0.2)),
        _named("heavy", weights=_weights(14.0, 15.0)),
        _named("exact", geometry=_geometry(reachable=True), weights=_weights(15.0, 15.0)),
        _named("flagged", geometry=_geometry(reachable=False, flag="kv_cache_dtype=fp8")),
        _named("riddle", geometry=_geometry(reachable=False)),
        _named(
            "wrong", verdict=VerdictCheck(predicted="started", measured="refused", basis="flags")
        ),
        _named(
            "right",
            verdict=VerdictCheck(predicted="started", measured="started", basis="logged_kv"),
        ),
        _named(
            "lost",
            gpu="Z9000",
            skipped="unknown GPU: No GPU is called 'Z9000'.",
            not_checked={"geometry": "unknown GPU: No GPU is called 'Z9000'."},
        ),
    )
    return Validation(records=records, summary=summarise(records))


def _weights(predicted: float, measured: float) -> WeightsCheck:
    return WeightsCheck(
        predicted_weights_gib=predicted,
        measured_weights_gib=measured,
        relative_error=predicted / measured - 1,
        share_of_card=abs(predicted - measured) / 80,
    )


def test_text_at_80_columns(snapshot: SnapshotAssertion) -> None:
    assert validation_text(made(), width=80, color=False) == snapshot


def test_text_of_nothing(snapshot: SnapshotAssertion) -> None:
    nothing = Validation(records=(), summary=summarise(()))
    assert validation_text(nothing, width=80, color=False) == snapshot


def test_json(snapshot: SnapshotAssertion) -> None:
    assert validation_json(made()).replace(__version__, "VERSION") == snapshot


def test_worst_first() -> None:
    text = validation_text(made(), width=120, color=False)
    misses = text.partition("Cache from flags alone")[2]
    assert misses.index("bold") < misses.index("shy") < misses.index("heavy")
    assert "close" not in misses
    assert "exact" not in misses


def test_where_more_are_off_than_are_shown_the_title_says_how_many() -> None:
    records = tuple(_named(f"off{n:02}", end_to_end=_kv(55.0 + n, 50.0)) for n in range(12))
    text = validation_text(
        Validation(records=records, summary=summarise(records)), width=120, color=False
    )
    assert "Cache from flags alone, GiB: the worst 10 of 12 " in text
    assert "off11" in text.partition("worst 10 of 12")[2]
    assert "off01" not in text.partition("worst 10 of 12")[2]
    assert "the worst" not in validation_text(made(), width=120, color=False)


@pytest.mark.parametrize("width", [80, 120, 140])
def test_no_line_is_wider_than_the_terminal_and_no_figure_is_cut(width: int) -> None:
    text = validation_text(made(), width=width, color=False)
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    for figure in ("55.00", "+10.0 %", "260,832 to 263,440", "131,072"):
        assert figure in text


def test_ascii_where_the_terminal_has_no_more() -> None:
    assert validation_text(made(), width=80, color=False, ascii_only=True).isascii()
    assert "\x1b[" in validation_text(made(), width=80, color=True)


def test_what_a_record_says_does_not_reach_the_terminal_raw() -> None:
    odd = _named("a\x1b[31m", model="b\x07", end_to_end=_kv(5, 1, "c\u202ed"))
    odd = odd.model_copy(update={"not_checked": {"weights": "e\x1bf"}})
    text = validation_text(
        Validation(records=(odd,), summary=summarise((odd,))), width=80, color=False
    )
    assert not {"\x1b", "\x07", "\u202e"} & set(text)


def test_json_has_a_key_for_each_check_that_was_made() -> None:
    found = json.loads(validation_json(validate([record(), record(gpu="Z9000")], Shelf())))
    assert found["schema"] == "kvplan.validation/1"
    full, skipped = found["records"]
    checks = {"geometry", "weights", "overhead", "end_to_end", "verdict"}
    assert checks <= set(full)
    assert full["skipped"] is None
    assert not checks & set(skipped)
    assert skipped["skipped"].startswith("unknown GPU")
    assert set(found["summary"]) == checks | {"records", "skipped"}
    assert found["summary"]["geometry"]["n"] == 1
    assert {
        "predicted_kv_gib",
        "low_kv_gib",
        "high_kv_gib",
        "predicted_tokens",
    } <= set(full["end_to_end"])
