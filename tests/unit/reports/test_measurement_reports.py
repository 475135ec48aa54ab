"""Measurement records as text and JSON."""

from __future__ import annotations

import json

from kvplan.measurement import LiveLoad, Measurement
from kvplan.reports.measurements import measurements_json, measurements_text


def text(*records: Measurement, ascii_only: bool = False) -> str:
    return measurements_text(records, width=80, color=False, ascii_only=ascii_only)


def test_only_what_is_known_is_shown() -> None:
    assert text(Measurement(engine="vllm", source="a:1")) == "vllm\na:1\n"
    shown = text(Measurement(engine="vllm", source="a:1", weights_gib=14.25, kv_tokens=12345))
    assert "14.25 GiB" in shown
    assert "12,345 tokens" in shown
    assert "None" not in shown


def test_the_spread_is_shown_where_there_is_one() -> None:
    values = {"engine": "vllm", "weights_gib": 14.0, "weights_gib_per_rank": [14.0, 15.0]}
    assert "(14.00 to 15.00 over 2 ranks)" in text(Measurement.model_validate(values))
    values["weights_gib_per_rank"] = [14.0, 14.0]
    assert "ranks" not in text(Measurement.model_validate(values))


def test_the_better_of_two_figures_is_shown() -> None:
    sure = LiveLoad(free_tokens=5, free_tokens_at_most=9).model_dump()
    unsure = LiveLoad(free_tokens_at_most=9).model_dump()
    assert "at most" not in text(Measurement.model_validate({"live": sure}))
    assert "at most" in text(Measurement.model_validate({"live": unsure}))


def test_what_a_log_says_is_harmless_to_a_terminal() -> None:
    shown = text(Measurement(engine="vllm", model="\x1b[2Jevil\nname", source="a\u202eb"))
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert shown.count("\n") == 2


def test_ascii_where_that_is_all_there_is() -> None:
    assert text(Measurement(engine="vllm", model="m", kv_tokens=1), ascii_only=True).isascii()


def test_json_has_every_key_and_what_else_there_is() -> None:
    record = Measurement.model_validate({"tp": 2, "rank": "TP1"})
    data = json.loads(measurements_json([record]))
    assert data["schema"] == "kvplan.measurements/1"
    assert (data["records"][0]["rank"], data["records"][0]["gpu"]) == ("TP1", None)
