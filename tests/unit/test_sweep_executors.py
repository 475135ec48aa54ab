"""Jobs on processes and on Ray: each once, in any order, the same results."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from kvplan.cli.main import run
from kvplan.errors import FactsError, UsageError
from kvplan.sweep_executors import Executor, run_all

SWEPT = ["sweep", "meta-llama/Llama-3.1-8B-Instruct", "--gpu", "H100", "--offline", "--simulate",
         "--lengths", "1k/40", "--requests", "30", "--vary", "rate=2..8*2", "--vary", "tp=1,3",
         "--vary", "seed=0,1", "--first-token", "2s", "--format", "json", "-q"]  # fmt: skip


def simulated(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert run([*SWEPT, *words]) == 0
    return capsys.readouterr().out


def test_one_after_the_other() -> None:
    assert list(run_all(len, ["a", "bb", ""], Executor(jobs=1))) == [(0, 1), (1, 2), (2, 0)]
    assert list(run_all(len, [], Executor(jobs=8))) == []


def test_on_processes_each_job_runs_once_and_elsewhere() -> None:
    found = dict(run_all(_where, range(12), Executor(jobs=2)))
    assert sorted(found) == list(range(12))
    assert os.getpid() not in found.values()
    assert len(set(found.values())) <= 2


def _where(_: int) -> int:
    return os.getpid()


def _fail(number: int) -> int:
    if number == 3:
        raise UsageError("No.", hint="Try.", location="there")
    return number


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_error_of_a_job_is_the_callers(jobs: int) -> None:
    with pytest.raises(UsageError) as caught:
        list(run_all(_fail, range(8), Executor(jobs=jobs)))
    assert (caught.value.message, caught.value.hint, caught.value.location) == (
        "No.", "Try.", "there",
    )  # fmt: skip


def _die(_: int) -> int:
    os._exit(3)


def test_a_process_that_dies_is_said() -> None:
    with pytest.raises(FactsError, match="died"):
        list(run_all(_die, range(4), Executor(jobs=2)))


def test_simulations_are_the_same_on_any_number_of_processes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    one = simulated(capsys, "--jobs", "1")
    assert one == simulated(capsys, "--jobs", "2")
    rows = json.loads(one)["rows"]
    assert [row["status"] for row in rows] == ["simulated", "simulated", "refused", "refused"] * 3
    assert rows[0]["seed"] == 0
    assert rows[0]["requests_per_s"] != rows[1]["requests_per_s"]
    assert {row["finished"] for row in rows if row["status"] == "simulated"} == {30}


def test_a_point_is_what_simulate_says(capsys: pytest.CaptureFixture[str]) -> None:
    rows = json.loads(simulated(capsys, "--jobs", "1"))["rows"]
    words = ["simulate", *SWEPT[1:5], "--lengths", "1k/40", "--requests", "30", "--rate", "4/s"]
    assert run([*words, "--seed", "1", "--first-token", "2s", "--format", "json"]) == 0
    alone = json.loads(capsys.readouterr().out)
    row = next(r for r in rows if (r["rate"], r["tp"], r["seed"]) == (4, 1, 1))
    assert row["waiting_s_p95"] == alone["waiting"]["seconds"]["p95"]
    assert row["occupancy_p99"] == alone["used_blocks"]["p99"] / alone["pool"]["blocks"]
    assert row["goodput_per_s"] == alone["throughput"]["goodput_per_s"]
    assert row["first_token_s_p50"] == alone["latency"]["first_token"]["p50"]
    assert row["simulated_s"] == alone["simulated_s"]


def test_ray_needs_to_be_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kvplan.sweep_executors.find_spec", lambda _: None)
    with pytest.raises(UsageError) as caught:
        list(run_all(len, ["a"], Executor("ray")))
    assert "kvplan-sizer[ray]" in (caught.value.hint or "")


@pytest.mark.parametrize("address", ["127.0.0.1:1", "ray://127.0.0.1:1"])
def test_a_cluster_that_is_not_there_is_said_at_once(address: str) -> None:
    pytest.importorskip("ray")
    with pytest.raises(FactsError, match="No Ray cluster answers"):
        list(run_all(len, ["a"], Executor("ray", address=address)))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="ray's own limits")
def test_simulations_are_the_same_on_ray(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    pytest.importorskip("ray")
    here = simulated(capsys, "--jobs", "1", "--output", str(tmp_path / "here.json"))
    there = tmp_path / "there.json"
    words = ["--executor", "ray", "--ray-address", "local", "--jobs", "2"]
    assert here == simulated(capsys, *words, "--output", str(there)) == ""
    assert there.read_bytes() == (tmp_path / "here.json").read_bytes()
