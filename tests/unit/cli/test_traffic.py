"""The command that plans for real traffic, from its words to its exit codes."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from kvplan.cli.main import run
from kvplan.cli.traffic_words import (
    parse_daily,
    parse_prefix,
    parse_rate,
    parse_share,
    parse_speed,
    parse_time,
)
from kvplan.errors import UsageError

BASE = ("traffic", "meta-llama/Llama-3.1-8B-Instruct", "--gpu", "H100", "--offline")
LOAD = ("--lengths", "1k/300", "--rate", "20/s", "--decode-rate", "30", "--daily", "peak=2.5")


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    """The JSON of one run."""
    run([*BASE, *arguments, "--format", "json"])
    found: dict[str, object] = json.loads(capsys.readouterr().out)
    return found


def test_a_fixed_length_is_the_plans_own_figure(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, "--lengths", "8k", "--context", "8k")
    assert run(["size", *BASE[1:], "--context", "8k", "--format", "json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert found["schema"] == "kvplan.traffic/1"
    assert found["held"]["requests"] == plan["capacity"]["requests"]  # type: ignore[index]


def test_the_ends_of_the_range_are_said(capsys: pytest.CaptureFixture[str]) -> None:
    """A request of one length holds whole blocks, so the ends are those of the plan's tokens."""
    found = answer(capsys, "--lengths", "8k", "--context", "8k")
    assert run(["size", *BASE[1:], "--context", "8k", "--format", "json"]) == 0
    capacity = json.loads(capsys.readouterr().out)["capacity"]
    ends = [capacity[name] // 8192 for name in ("tokens_low", "tokens_high")]
    said = [reason["message"] for reason in found["reasons"] if reason["code"] == "held_range"]  # type: ignore[attr-defined, index, call-overload]
    assert len(said) == 1
    assert f"{ends[0]} to {ends[1]} requests are held" in said[0]
    given = answer(capsys, "--lengths", "8k", "--kv-budget", "20GiB")
    assert "held_range" not in str(given["reasons"])


def test_a_day_fits_on_average_and_not_at_noon(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*BASE, *LOAD]) == 1
    text = capsys.readouterr().out
    assert "Does not fit" in text
    assert "It fits at the day's mean rate" in text
    assert "█" in text
    found = answer(capsys, *LOAD)
    load = found["load"]
    assert isinstance(load, dict)
    assert load["concurrent"] == pytest.approx(20 * 10.0)
    assert load["risk"] < 0.001 < load["peak_risk"]
    needed = str(load["replicas_needed"])
    assert run([*BASE, *LOAD, "--dp", needed]) == 0
    assert run([*BASE, *LOAD, "--dp", str(int(needed) - 1)]) == 1


def test_a_shared_prefix_holds_more(capsys: pytest.CaptureFixture[str]) -> None:
    long = answer(capsys, "--lengths", "3k/300")
    shared = answer(capsys, "--lengths", "1k/300", "--prefix", "2k")
    assert shared["held"]["requests"] > 2 * long["held"]["requests"]  # type: ignore[index]
    assert shared["prefix"]["units_once"] == 128  # type: ignore[index]


def test_users_think_in_between(capsys: pytest.CaptureFixture[str]) -> None:
    flags = ("--lengths", "1k/300", "--users", "400", "--think", "30s", "--decode-rate", "30")
    load = answer(capsys, *flags)["load"]
    assert isinstance(load, dict)
    assert load["concurrent"] == pytest.approx(400 * 10 / 40)


def test_a_row_an_hour(capsys: pytest.CaptureFixture[str]) -> None:
    run([*BASE, *LOAD, "--format", "csv"])
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [int(row["hour"]) for row in rows] == list(range(24))


@pytest.mark.parametrize("wanted", ["text", "json", "csv", "markdown"])
def test_every_format_ends_with_a_newline(capsys: pytest.CaptureFixture[str], wanted: str) -> None:
    run([*BASE, "--lengths", "70% 1k/300 + 30% p50=2k,p95=9k/100", "--format", wanted])
    assert capsys.readouterr().out.endswith("\n")


def test_a_broken_trace_is_one_sentence(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("prompt_tokens,output_tokens\n5,5\n5,-1\n")
    assert run([*BASE, "--traffic", str(path)]) == 2
    error = capsys.readouterr().err
    assert f"{path}:3: The output is -1: negative." in error
    assert "Traceback" not in error


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--lengths", "1k/300", "--traffic", "x"),
        ("--lengths", "1k/300", "--risk", "0%"),
        ("--lengths", "1k/300", "--risk", "60%"),
        ("--lengths", "1k/300", "--rate", "5/s"),
        ("--lengths", "1k/300", "--daily", "peak=2"),
        ("--lengths", "1k/300", "--prefill-rate", "10"),
        ("--lengths", "1k/300", "--rate", "1/s", "--users", "3", "--decode-rate", "30"),
        ("--lengths", "1k", "--turns", "3"),
        ("--lengths", "200k/1"),
    ],
)
def test_what_makes_no_sense_is_a_usage_error(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]
) -> None:
    assert run([*BASE, *arguments]) == 2
    assert capsys.readouterr().err.startswith("error: ")


def test_an_engine_without_a_pool_is_refused() -> None:
    assert run([*BASE, "--lengths", "1k/300", "--engine", "transformers"]) == 4


def test_words() -> None:
    assert parse_rate("1M/day") == pytest.approx(1e6 / 86_400)
    assert parse_time("--think", "250ms") == 0.25
    assert parse_share("--risk", "1") == 1.0
    assert parse_speed("--decode-rate", "12.5") == 12.5
    assert parse_daily("peak=3").peak == pytest.approx(3)
    rule = parse_prefix("2k,tenants=3,share=50%,change=24h,global")
    assert rule is not None
    assert (rule.tokens, rule.copies, rule.share, rule.change_every_s) == (2048, 1, 0.5, 86_400)


@pytest.mark.parametrize("text", ["2k,colour", "2k,tenants", "2k,tenants=0", "x", "2k,global=1"])
def test_what_is_no_prefix(text: str) -> None:
    with pytest.raises(UsageError):
        parse_prefix(text)
