"""`kvplan calibrate`, and `kvplan size --profile` with what it wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from measured_starts import CONFIG, record

from kvplan.cli.main import run
from kvplan.sources.profile import read_profile

STATED: dict[str, Any] = {
    "model": "org/toy",
    "gpu": "H100",
    "tp": 1,
    "gpu_memory_utilization": 0.9,
    "engine_version": "0.30.0",
    "max_model_len": 4096,
    "activation_peak_gib": 5.0,
    "non_torch_gib": 1.0,
}


@pytest.fixture
def host(tmp_path: Path) -> Path:
    """Ten starts of a host that needs more than is usual."""
    (tmp_path / "org--toy").mkdir()
    (tmp_path / "org--toy" / "config.json").write_text(json.dumps(CONFIG))
    lines = [record(id=f"s{index}", **STATED).json_line() for index in range(10)]
    (tmp_path / "starts.jsonl").write_text("\n".join(lines) + "\n")
    return tmp_path


def learn(host: Path, *more: str) -> int:
    words = [str(host / "starts.jsonl"), "--configs", str(host), "--offline"]
    return run(["calibrate", *words, *more])


def test_a_profile_on_standard_output(host: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert learn(host) == 0
    out, err = capsys.readouterr()
    assert out.startswith("schema: kvplan.host/1\n")
    assert "10 starts on H100-SXM-80GB" in err


def test_a_profile_changes_the_plan_and_is_named(
    host: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = host / "host.yaml"
    assert learn(host, "-o", str(path)) == 0
    assert read_profile(path).starts == 10
    words = ["size", str(host / "org--toy"), "--gpu", "H100", "--format", "json", "--offline"]
    words += ["--engine", "vllm==0.30.0"]
    capsys.readouterr()
    assert run(words) == 0
    before = json.loads(capsys.readouterr().out)
    assert run([*words, "--profile", str(path)]) == 0
    after = json.loads(capsys.readouterr().out)
    lines = {line["name"]: line for line in after["ledger"]}
    assert lines["activation_peak"]["source"].startswith("host profile host.yaml, 10 starts; ")
    assert after["kv"]["budget_bytes"] < before["kv"]["budget_bytes"]
    assert "profile_used" in {reason["code"] for reason in after["reasons"]}


def test_a_profile_of_another_gpu_is_not_used(
    host: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = host / "host.yaml"
    assert learn(host, "-o", str(path)) == 0
    words = ["size", str(host / "org--toy"), "--gpu", "L4", "--format", "json", "--offline"]
    capsys.readouterr()
    assert run(words) == 0
    before = json.loads(capsys.readouterr().out)
    assert run([*words, "--profile", str(path)]) == 0
    after = json.loads(capsys.readouterr().out)
    assert after["kv"] == before["kv"]
    assert after["reasons"][-1]["code"] == "profile_not_used"


def test_records_that_say_nothing(host: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (host / "starts.jsonl").write_text(record(id="a").json_line() + "\n")
    assert learn(host) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: No record says how this host's memory differs")
