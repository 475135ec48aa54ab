"""Tiers, separate pools, kept sessions and policies on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from kvplan.cli.main import run
from kvplan.planning.traffic import answer as module
from kvplan.traffic_parts import HeldByClosedSimulation

BASE = ("traffic", "meta-llama/Llama-3.1-8B-Instruct", "--gpu", "H100", "--offline")
LENGTHS = ("--lengths", "p50=1k,p95=8k/p50=300,p95=1k")
TALKS = ("--turns", "6", "--lengths", "200/300", "--think", "60s", "--decode-rate", "40")
APART = ("--rate", "4/s", "--kv-link", "ib-400", "--between-tokens", "25ms")


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    """The JSON of one run."""
    run([*BASE, *arguments, "--format", "json"])
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What is said on stderr of arguments that make no sense."""
    assert run([*BASE, *arguments]) == 2
    return capsys.readouterr().err


def test_kept_sessions_cost_blocks(capsys: pytest.CaptureFixture[str]) -> None:
    free = answer(capsys, *TALKS, "--rate", "1/s")
    kept = answer(capsys, *TALKS, "--rate", "1/s", "--retain", "5min")
    assert kept["held"]["requests"] < free["held"]["requests"]
    assert kept["load"]["most_rate_per_s"] < free["load"]["most_rate_per_s"] / 5
    part = kept["retention"]
    # Five of six turns wait for the next one: 59.6 s of 60; the last for nothing.
    assert part["kept_s"] == pytest.approx((5 * 60 * 0.99326 + 300) / 6, rel=1e-4)
    assert part["kept_concurrent"] == pytest.approx(part["kept_s"])
    assert part["running"] + part["kept"] == kept["held"]["requests"]
    assert free["retention"] is None


def test_a_longer_time_to_live_never_holds_more(capsys: pytest.CaptureFixture[str]) -> None:
    rates = [
        answer(capsys, *TALKS, "--rate", "1/s", "--retain", ttl)["load"]["most_rate_per_s"]
        for ttl in ("1s", "30s", "5min", "1h")
    ]
    assert rates == sorted(rates, reverse=True)
    assert len(set(rates)) == len(rates)


def test_users_are_kept_between_their_requests(capsys: pytest.CaptureFixture[str]) -> None:
    flags = ("--lengths", "1k/300", "--users", "100", "--think", "30s", "--decode-rate", "30")
    kept = answer(capsys, *flags, "--retain", "1h")
    # 10 s of answer and 30 s of thought, all of it kept.
    assert kept["load"]["concurrent"] == pytest.approx(100)
    assert answer(capsys, *flags)["load"]["concurrent"] == pytest.approx(25)


def test_nothing_says_who_comes_back(capsys: pytest.CaptureFixture[str]) -> None:
    assert "--turns 6" in said(capsys, *LENGTHS, "--retain", "5min")
    assert "--decode-rate" in said(capsys, *TALKS[:6], "--retain", "5min")


def test_separate_pools(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, *LENGTHS, *APART, "--first-token", "1s")
    two = found["disaggregated"]
    assert two["link"]["name"] == "ib-400"
    assert two["link"]["bytes_per_s"] == 50e9
    assert two["transfer"]["bytes_mean"] / (50e9 * 0.9) == pytest.approx(
        two["transfer"]["seconds_mean"], rel=1e-6
    )
    assert two["first_token"]["total_s"] <= 1.0
    assert two["prefill"]["gpus"] == two["prefill"]["replicas"] > 1
    assert two["decode"]["replicas"] == 1
    wide = answer(capsys, *LENGTHS, *APART, "--first-token", "1s", "--prefill-tp", "4")
    prefill = wide["disaggregated"]["prefill"]
    assert prefill["prompt_s"] < two["prefill"]["prompt_s"] / 3
    assert prefill["gpus"] == 4 * prefill["replicas"]


def test_a_limit_that_no_pool_keeps_does_not_fit(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*BASE, *LENGTHS, *APART, "--first-token", "200ms"]) == 1
    text = capsys.readouterr().out
    assert "No number of prefill replicas" in text
    assert "Prefill pool" in text


def test_pools_without_a_rate_or_a_limit_are_not_sized(capsys: pytest.CaptureFixture[str]) -> None:
    assert "--rate" in said(capsys, *LENGTHS, *APART[2:])
    assert "--between-tokens" in said(capsys, *LENGTHS, *APART[:4])
    assert "--kv-link" in said(capsys, *LENGTHS, "--first-token", "1s")
    assert "--kv-link" in said(capsys, *LENGTHS, "--prefill-tp", "2")
    assert "bits or bytes" in said(capsys, *LENGTHS, *APART[:3], "400gb", *APART[4:])


def test_a_tier_is_weighed_against_computing(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, *LENGTHS, "--tier", "host=200GiB@pcie", "--tier", "disk=2TB@1GB")
    host, disk = found["tiers"]
    assert host["faster"] > 1 > disk["faster"]
    assert host["bytes"] == 200 * 2**30
    assert host["source"].startswith("pcie-5")
    given = answer(capsys, *LENGTHS, "--tier", "host=200GiB@pcie", "--decode-rate", "40",
                   "--prefill-rate", "1000000")  # fmt: skip
    assert given["tiers"][0]["faster"] < 1
    assert "is no tier" in said(capsys, *LENGTHS, "--tier", "tape=1TB@1GB")


def test_a_policy_is_a_figure_beside_the_engines_own(capsys: pytest.CaptureFixture[str]) -> None:
    plain = answer(capsys, *LENGTHS)
    found = answer(capsys, *LENGTHS, "--kv-policy", "streaming:sinks=4,window=1020")
    assert found["held"] == plain["held"]
    assert found["policy"]["implemented"] is False
    assert found["policy"]["requests"] > 2 * plain["held"]["requests"]
    # 1,024 tokens in blocks of 16, at most.
    assert found["policy"]["mean_units"] <= 64
    codes = {reason["code"] for reason in found["reasons"]}
    assert {"kv_policy_not_implemented", "kv_policy_trades_recall"} <= codes
    assert "There is no policy" in said(capsys, *LENGTHS, "--kv-policy", "lru")


def test_dropping_more_never_holds_less(capsys: pytest.CaptureFixture[str]) -> None:
    held = [
        answer(capsys, *LENGTHS, "--kv-policy", f"kvpress:ratio={ratio}")["policy"]["requests"]
        for ratio in ("0", "0.25", "0.5", "0.9")
    ]
    assert held == sorted(held)
    assert held[0] == answer(capsys, *LENGTHS)["held"]["requests"]


def test_the_analysis_is_verified_on_request(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, *LENGTHS, "--verify")["held"]
    assert found["simulated"]["agrees"] is True
    assert found["offered"] is True
    assert abs(found["simulated"]["requests"] - found["requests"]) <= 0.02 * found["requests"]


def test_what_several_pools_leave_open_is_not_offered(capsys: pytest.CaptureFixture[str]) -> None:
    """SGLang keeps windows of Gemma in a pool of their own."""
    arguments = ("traffic", "google/gemma-3-12b-it", "--gpu", "H100", "--offline",
                 "--engine", "sglang", *LENGTHS, "--format", "json")  # fmt: skip
    run([*arguments])
    found = json.loads(capsys.readouterr().out)
    held = found["held"]
    codes = {reason["code"] for reason in found["reasons"]}
    wide = held["at_most"] - held["requests"] > max(1, 0.02 * held["at_most"])
    assert held["offered"] is not wide
    assert ("approximation_not_offered" in codes) is wide


def test_a_day_as_a_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "day.svg"
    run([*BASE, "--lengths", "1k/300", "--rate", "20/s", "--decode-rate", "30", "--daily",
         "peak=2.5", "--output", str(path)])  # fmt: skip
    root = ET.fromstring(path.read_text())  # noqa: S314  our own file
    words = ["".join(node.itertext()) for node in root.iter() if node.tag.endswith("text")]
    assert [word for word in words if word.isdigit() and int(word) < 24][:24]
    assert "most at the chosen risk" in words
    assert any("Does not fit" in word for word in words)
    bars = [node.get("fill") for node in root.iter() if node.tag.endswith("rect")]
    assert bars.count("#c53030") > 2
    assert "Does not fit" in capsys.readouterr().err


def test_held_requests_as_a_picture(tmp_path: Path) -> None:
    path = tmp_path / "held.svg"
    assert run([*BASE, "--lengths", "1k/300", "--output", str(path)]) == 0
    assert "if all were average" in path.read_text()


PREFIX = ("--lengths", "1k/300", "--rate", "5/s", "--decode-rate", "30", "--prefix")


def test_a_change_of_version_costs_both_until_the_old_one_drains(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = answer(capsys, *PREFIX, "2k,tenants=20,change=24h")["prefix"]
    # 2,048 tokens in blocks of 16 tokens and 2 MiB, for 20 tenants.
    assert found["copies"] == 20
    assert found["change_units"] == found["units_once"] == 20 * 128
    assert found["change_bytes"] == 20 * 128 * 2 * 2**20
    assert found["change_s"] == pytest.approx(10.0)
    assert found["versions_alive"] == pytest.approx(1 + 10 / 86_400)
    assert 0.9 < found["hit_rate"] < 1
    often = answer(capsys, *PREFIX, "2k,tenants=20,change=60s")["prefix"]
    assert often["hit_rate"] < found["hit_rate"]


def test_a_prefix_is_shared_across_tenants_only_if_declared(
    capsys: pytest.CaptureFixture[str],
) -> None:
    own = answer(capsys, *PREFIX, "2k,tenants=20")["prefix"]
    everybody = answer(capsys, *PREFIX, "2k,tenants=20,global")["prefix"]
    assert (own["copies"], everybody["copies"]) == (20, 1)
    assert own["units_once"] == 20 * everybody["units_once"]
    assert everybody["bytes_saved"] == pytest.approx(everybody["units_saved"] * 2 * 2**20)
    assert "cannot be global" in said(capsys, *PREFIX, "2k,global,personal")


SIZE = (
    "size",
    "meta-llama/Llama-3.1-8B-Instruct",
    "--gpu",
    "H100",
    "--offline",
    "--context",
    "32k",
)


def test_size_says_what_a_policy_would_leave(capsys: pytest.CaptureFixture[str]) -> None:
    plain = json.loads(_size(capsys))
    found = json.loads(_size(capsys, "--kv-policy", "kvpress:ratio=0.75"))
    assert found["kv"] == plain["kv"]
    said_of = {reason["code"]: reason["message"] for reason in found["reasons"]}
    assert "about 1.00 GiB of 4.00 GiB" in said_of["kv_policy"]
    assert "8,192 entries" in said_of["kv_policy"]
    assert "does not implement kvpress" in said_of["kv_policy_not_implemented"]
    assert "recall" in said_of["kv_policy_trades_recall"]


def test_transformers_can_have_it(capsys: pytest.CaptureFixture[str]) -> None:
    text = _size(capsys, "--kv-policy", "snapkv:budget=2k", "--engine", "transformers")
    codes = {reason["code"] for reason in json.loads(text)["reasons"]}
    assert {"kv_policy", "kv_policy_trades_recall"} <= codes
    assert "kv_policy_not_implemented" not in codes


def _size(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    run([*SIZE, *arguments, "--format", "json"])
    return capsys.readouterr().out


def test_an_analysis_that_a_simulation_contradicts_is_withdrawn(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if the walk held a tenth fewer."""
    plain = answer(capsys, *LENGTHS)["held"]["requests"]
    fewer = HeldByClosedSimulation(requests=plain * 9 // 10, risk=0.001, agrees=False)
    monkeypatch.setattr(module, "verified", lambda *_: fewer)
    found = answer(capsys, *LENGTHS, "--verify")
    assert found["held"]["requests"] == fewer.requests
    assert found["held"]["at_most"] == plain
    assert found["held"]["offered"] is False
    assert "analysis_withdrawn" in {reason["code"] for reason in found["reasons"]}
    flags = ("--rate", "1/s", "--decode-rate", "40")
    assert run([*BASE, *LENGTHS, *flags]) == 0
    assert run([*BASE, *LENGTHS, *flags, "--verify"]) == 1
    capsys.readouterr()
    run([*BASE, *LENGTHS, "--verify"])
    assert "Holds at least" in capsys.readouterr().out


def test_a_vast_rate_is_an_answer_too(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["traffic", "meta-llama/Llama-3.1-8B-Instruct", "--gpu", "H100", "--offline"]
    words += ["--lengths", "8k/300", "--decode-rate", "30", "--rate", "999999999999M/s"]
    assert run(words) == 1
    assert "too little memory 100 % of the time" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("limit", "said"),
    [
        (["--between-tokens", "1ms"], "A single request already takes longer than 0.001 s"),
        (["--between-tokens", "30ms", "--first-token", "1ms"], "No number of prefill replicas"),
    ],
)
def test_the_headline_says_what_separate_pools_can_not_keep(
    capsys: pytest.CaptureFixture[str], limit: list[str], said: str
) -> None:
    words = ["traffic", "meta-llama/Llama-3.1-8B-Instruct", "--gpu", "H100", "--offline"]
    words += ["--lengths", "200/300", "--rate", "5/s", "--kv-link", "ib-400", *limit]
    assert run(words) == 1
    assert capsys.readouterr().out.startswith(f"Does not fit. {said}")
