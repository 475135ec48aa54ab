"""Scenarios with real traffic: the figures of `kvplan traffic`, and what fails without them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from kvplan.check_result import ScenarioResult, TrafficResult
from kvplan.checking.locking import make_lock
from kvplan.cli.traffic_source import TrafficFlags, question_of
from kvplan.reports.render_check import render_check
from kvplan.scenario.overrides import parse_overrides
from kvplan.sources.results import read_result
from kvplan.traffic_plan import LoadOnPools
from kvplan.traffic_planner import plan_traffic
from tests.scenario_files import LLAMA, OFFLINE, checked, codes, one, results, write

BUDGET = 20 * 2**30
# Exact arithmetic: 20 GiB are 10,240 blocks of 16 tokens, of which one holds nobody.
BASE = "context: 32k\nkv_budget: 20GiB\n"
TALKS = """\
lengths: 200/300, rate: 1/s, decode_rate: 30, think: 60s, sessions: {turns: 8, ttl: 5min},
  prefixes: [{name: p, tokens: 2k, tenants: 4}]"""
LENGTHS = "p50=1k,p95=8k/p50=200,p95=900"


def answered(folder: Path, workload: str, rest: str = "") -> tuple[ScenarioResult, TrafficResult]:
    found = checked(folder, f"{BASE}workload: {{{workload}}}\n{rest}")
    assert found.traffic is not None, found
    return found, found.traffic


def load_of(traffic: TrafficResult) -> LoadOnPools:
    assert traffic.plan.load is not None
    return traffic.plan.load


@pytest.mark.parametrize(
    ("workload", "flags"),
    [
        (
            f'lengths: "{LENGTHS}", rate: 5/s, daily: peak=2.5, decode_rate: 40',
            TrafficFlags(lengths=LENGTHS, rate="5/s", daily="peak=2.5", decode_rate="40"),
        ),
        (
            "lengths: 70% 1k/300 + 30% 8k/100, users: 50, think: 30s, decode_rate: 20, risk: 1%",
            TrafficFlags(
                lengths="70% 1k/300 + 30% 8k/100",
                users="50",
                think="30s",
                decode_rate="20",
                risk="1%",
            ),
        ),
        (
            TALKS,
            TrafficFlags(
                lengths="200/300",
                turns="8",
                rate="1/s",
                decode_rate="30",
                retain="5min",
                think="60s",
                prefix="2k,tenants=4",
            ),
        ),
    ],
)
def test_a_scenario_says_what_the_command_says(
    workload: str, flags: TrafficFlags, tmp_path: Path
) -> None:
    _, traffic = answered(tmp_path, workload)
    told = plan_traffic(
        LLAMA,
        "H100-SXM-80GB",
        question_of(flags),
        engine="vllm==0.33.0",
        context=32768,
        kv_budget=BUDGET,
        offline=True,
    )
    assert traffic.plan == told
    assert traffic.overload_risk == load_of(traffic).peak_risk
    assert traffic.replicas_needed == load_of(traffic).replicas_needed


def test_risk_and_replicas_are_expected(tmp_path: Path) -> None:
    workload = f'lengths: "{LENGTHS}", rate: 20/s, decode_rate: 40'
    lines = "expect: [overload_risk <= 0.1%, replicas <= 4, held_requests >= 1000]"
    found, traffic = answered(tmp_path, workload, lines)
    needed = traffic.replicas_needed
    assert needed is not None
    assert needed > 2
    status = {each.text: each.status for each in found.assertions}
    assert status["overload_risk <= 0.1%"] == "fails"
    assert status["replicas <= 4"] == ("holds" if needed <= 4 else "fails")
    assert status["held_requests >= 1000"] == "fails"
    # As many replicas as it asks for are enough; far fewer are not.
    for replicas, outcome in ((needed, "passed"), (needed - 2, "failed")):
        again = replace(OFFLINE, overrides=parse_overrides([f"dp={replicas}"]))
        body = f"{BASE}workload: {{{workload}}}\nexpect: [overload_risk <= 0.1%]"
        assert checked(tmp_path, body, again).outcome == outcome


def test_traffic_that_does_not_fit_fails_where_nothing_is_said_of_it(tmp_path: Path) -> None:
    found, _ = answered(tmp_path, f'lengths: "{LENGTHS}", rate: 50/s, decode_rate: 40, risk: 2%')
    assert found.outcome == "failed"
    (failing,) = [each for each in found.assertions if each.status == "fails"]
    assert failing.text == "overload_risk <= 2%"
    assert failing.place.line == 3
    said, _ = answered(
        tmp_path, f'lengths: "{LENGTHS}", rate: 50/s, decode_rate: 40', "expect: [replicas <= 100]"
    )
    assert said.outcome == "passed"


def test_a_number_of_requests_that_is_always_there(tmp_path: Path) -> None:
    workload = f'lengths: "{LENGTHS}"'
    _, traffic = answered(tmp_path, workload, "concurrency: 1")
    most = traffic.plan.held.requests
    for requests, outcome, replicas in ((most, "passed", 1), (most + 5, "failed", 2)):
        found, traffic = answered(tmp_path, workload, f"concurrency: {requests}")
        assert (found.outcome, traffic.replicas_needed) == (outcome, replicas)
        assert traffic.overload_risk is not None
        assert (traffic.overload_risk <= 0.001) == (outcome == "passed")
    # The plan does not judge so many requests at full length, which would be too many.
    assert found.plan is not None
    assert found.plan.workload.concurrency is None


def test_without_a_number_of_requests_there_is_no_risk(tmp_path: Path) -> None:
    found, _ = answered(tmp_path, f'lengths: "{LENGTHS}"', "expect: [overload_risk <= 100%]")
    assert found.outcome == "failed"
    (unknown,) = [each for each in found.assertions if each.status == "unknown"]
    assert "neither concurrency nor a rate or users are stated" in unknown.message
    silent, _ = answered(tmp_path, f'lengths: "{LENGTHS}"')
    assert [each.text for each in silent.assertions] == ["verdict == fits", "held_requests >= 1"]


def test_fixed_lengths_have_a_risk_where_it_is_asked_for(tmp_path: Path) -> None:
    body = "kv_budget: 20GiB\nconcurrency: {}\nworkload: {{input_tokens: 8k, output_tokens: 1k}}\n"
    assert checked(tmp_path, body.format(4)).traffic is None
    found = checked(tmp_path, body.format(4) + "expect: [overload_risk <= 0.1%]")
    assert found.outcome == "passed"
    many = checked(tmp_path, body.format(40) + "expect: [overload_risk <= 0.1%]")
    assert many.outcome == "failed"


TRACE = "arrival,prompt_tokens,output_tokens\n" + "".join(
    f"{each},{500 + 37 * each % 4000},{50 + 13 * each % 400}\n" for each in range(200)
)


def test_a_trace_has_its_own_rate(tmp_path: Path) -> None:
    (tmp_path / "monday.csv").write_text(TRACE, encoding="utf-8")
    found, traffic = answered(tmp_path, "trace: monday.csv, decode_rate: 20")
    assert found.outcome == "passed"
    assert traffic.plan.traffic == "monday.csv"
    assert traffic.plan.requests_read == 200
    assert load_of(traffic).rate_per_s == pytest.approx(200 / 199)
    assert codes(found) == []
    _, at_once = answered(tmp_path, "trace: monday.csv", "concurrency: 30")
    assert at_once.plan.load is None
    assert at_once.overload_risk is not None


def test_a_trace_that_cannot_be_read_names_its_line(tmp_path: Path) -> None:
    (tmp_path / "monday.csv").write_text(TRACE + "x,y,z\n", encoding="utf-8")
    found = checked(tmp_path, f"{BASE}workload: {{trace: monday.csv, decode_rate: 20}}")
    assert (found.outcome, found.exit_code) == ("unreadable", 2)
    assert found.problem is not None
    assert "monday.csv:202" in found.problem.message


def test_seconds_a_request_say_how_fast_it_is(tmp_path: Path) -> None:
    _, traffic = answered(tmp_path, "lengths: 1k/300, rate: 2/s, seconds_per_request: 10s")
    assert load_of(traffic).life_s == pytest.approx(10)
    assert load_of(traffic).concurrent == pytest.approx(20)


def test_money_of_traffic_is_that_of_its_rate(tmp_path: Path) -> None:
    found, _ = answered(
        tmp_path, "lengths: 1k/300, rate: 2/s, decode_rate: 30", "prices: {gpu_hour: 7.2}"
    )
    assert found.cost is not None
    assert found.cost.per_request == pytest.approx(7.2 / 7200)


def test_kept_sessions_hold_blocks(tmp_path: Path) -> None:
    turns = "lengths: 200/300, decode_rate: 30, think: 60s, sessions: {turns: 8%s}"
    _, without = answered(tmp_path, turns % "", "concurrency: 20")
    _, kept = answered(tmp_path, turns % ", ttl: 5min", "concurrency: 20")
    assert without.overload_risk is not None
    assert kept.overload_risk is not None
    assert kept.overload_risk > 0.9
    assert without.overload_risk < 0.001
    assert (kept.replicas_needed or 0) > (without.replicas_needed or 0) == 1


def test_what_is_not_planned_is_noted(tmp_path: Path) -> None:
    body = f"{BASE}concurrency: 2\nworkload: {{sessions: {{ttl: 5min, count: 3, tokens: 1k}}}}"
    notes = checked(tmp_path, body).notes
    assert [note.split(" ")[0] for note in notes] == ["Idle", "sessions.ttl"]
    asked = checked(tmp_path, body + "\nexpect: [requests_with_sessions >= 1]").notes
    assert [note.split(" ")[0] for note in asked] == ["sessions.ttl"]
    prefixes = "prefixes: [{name: a, tokens: 1k, version: a}, {name: b, tokens: 1k, version: b}]"
    (note,) = checked(tmp_path, f"{BASE}concurrency: 2\nworkload: {{{prefixes}}}").notes
    assert note.startswith("Shared prefixes are only counted where")
    (note,) = answered(tmp_path, f"lengths: 4k/100, {prefixes}", "concurrency: 2")[0].notes
    assert note.startswith("In traffic the prefixes count as one")
    command = f"concurrency: 2\ncommand: vllm serve {LLAMA} --kv-transfer-config '{{}}'"
    (note,) = checked(tmp_path, command).notes
    assert note.startswith("Not planned: ")


def test_rules_know_traffic(tmp_path: Path) -> None:
    lengths = 'lengths: "p50=1k,p99=4k/100"'
    rated = f"{lengths}, rate: 1/s, decode_rate: 30"
    assert codes(answered(tmp_path, rated)[0]) == []
    assert codes(answered(tmp_path, lengths)[0]) == ["KV105"]
    for most, found in ((30, []), (500, ["KV106"])):
        limited = f"options: {{max_num_seqs: {most}}}"
        assert codes(answered(tmp_path, rated.replace("1/s", "2/s"), limited)[0]) == found
    longest = checked(tmp_path, f"kv_budget: 20GiB\nworkload: {{{rated}}}")
    assert codes(longest) == ["KV104"]


def test_a_trace_that_changed_is_drift(tmp_path: Path) -> None:
    trace = tmp_path / "monday.csv"
    trace.write_text(TRACE, encoding="utf-8")
    path = write(tmp_path, one(f"{BASE}workload: {{trace: monday.csv, decode_rate: 20}}"))
    made, failed = make_lock([path], replace(OFFLINE, lock_folder=tmp_path))
    assert not failed
    settings = replace(OFFLINE, lock=made, lock_folder=tmp_path, locked=True)
    assert codes(results(path, settings).scenarios[0]) == []
    trace.write_text(TRACE.replace(",5", ",95"), encoding="utf-8")
    (finding,) = results(path, settings).scenarios[0].findings
    assert finding.code == "KV201"
    assert "Changed since the lock: trace " in finding.message
    assert "requests of the traffic " in finding.message


def test_every_format_shows_the_traffic(tmp_path: Path) -> None:
    path = write(tmp_path, one(f'{BASE}workload: {{lengths: "{LENGTHS}", sessions: {{ttl: 1h}}}}'))
    found = results(path)
    held = found.scenarios[0].traffic
    assert held is not None
    count = f"{held.plan.held.requests:,}"
    assert f"Holds {count} requests of this traffic" in render_check(found, "text")
    assert f"| {count} at 0.1 % |" in render_check(found, "markdown")
    data = json.loads(render_check(found, "json"))["scenarios"][0]
    assert data["traffic"]["plan"]["held"]["requests"] == held.plan.held.requests
    assert "  note    sessions.ttl is not planned" in render_check(found, "text")
    assert "sessions.ttl is not planned" in render_check(found, "junit")


def test_a_result_with_traffic_reads_back_and_is_a_baseline(tmp_path: Path) -> None:
    body = f'{BASE}workload: {{lengths: "{LENGTHS}", rate: 1/s, decode_rate: 40}}'
    path = write(tmp_path, one(body))
    file = tmp_path / "plans.json"
    file.write_text(render_check(results(path), "json"), encoding="utf-8")
    baseline = read_result(file)
    assert baseline == results(path)
    settings = replace(OFFLINE, baseline=baseline)
    assert codes(results(path, settings).scenarios[0]) == []
    busier = replace(settings, overrides=parse_overrides(["workload.rate=20/s", "kv_budget=18GiB"]))
    (finding,) = results(path, busier).scenarios[0].findings
    assert finding.code == "KV203"
    assert "requests of the traffic " in finding.message
    assert "replicas 1 → " in finding.message
