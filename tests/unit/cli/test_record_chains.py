"""Commands one after the other: records that one writes are what the next one reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from small_models import SMALL

from kvplan.cli.main import run
from kvplan.sources.profile import read_profile

LOG = Path(__file__).parents[2] / "data" / "logs" / "vllm-0.33.0-json.log"
MODEL = "Qwen/Qwen3-8B"


def read_log(capsys: pytest.CaptureFixture[str], *more: str) -> str:
    """What `kvplan read-log` writes into a pipe."""
    assert run(["read-log", str(LOG), "--format", "jsonl", *more]) == 0
    return capsys.readouterr().out


def planned(capsys: pytest.CaptureFixture[str], *more: str) -> dict[str, Any]:
    words = ["size", MODEL, "--gpu", "H100 SXM", "--offline", "--format", "json", *more]
    assert run(words) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_a_log_changes_a_plan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    starts, host = tmp_path / "starts.jsonl", tmp_path / "host.yaml"
    starts.write_text(read_log(capsys, "--gpu", "H100 SXM"))
    assert run(["calibrate", str(starts), "--offline", "-o", str(host)]) == 0
    assert "1 start on H100-SXM-80GB" in capsys.readouterr().err
    before, after = planned(capsys), planned(capsys, "--profile", str(host))
    assert "profile_used" in {reason["code"] for reason in after["reasons"]}
    assert after["kv"]["budget_bytes"] != before["kv"]["budget_bytes"]


def test_a_log_without_its_card_is_not_enough(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    starts = tmp_path / "starts.jsonl"
    starts.write_text(read_log(capsys))
    assert run(["calibrate", str(starts), "--offline"]) == 2
    err = capsys.readouterr().err
    assert "gpu is not stated" in err
    assert "read-log --gpu" in err


@pytest.fixture
def measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """What `kvplan measure --record` writes of a small model."""
    pytest.importorskip("torch")
    (tmp_path / "config.json").write_text(json.dumps(SMALL["GQA"]))
    options = ["-o", "max_num_batched_tokens=48", "-o", "max_num_seqs=4", "--context", "64"]
    path = tmp_path / "counted.jsonl"
    words = ["measure", str(tmp_path), "--gpu", "H100 SXM", "--offline", "--device", "fake"]
    run([*words, *options, "--record", str(path)])
    capsys.readouterr()
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def learn(tmp_path: Path, record: dict[str, Any], *more: str) -> int:
    path = tmp_path / "record.jsonl"
    path.write_text(json.dumps(record) + "\n")
    return run(["calibrate", str(path), "--offline", *more])


def test_what_was_measured_says_of_what(measured: dict[str, Any]) -> None:
    stated = {key: measured[key] for key in ("engine", "gpu", "measured_on")}
    assert stated == {"engine": "vllm", "gpu": "H100-SXM-80GB", "measured_on": "fake"}
    assert measured["engine_version"]


def test_counts_without_a_gpu_are_no_profile(
    tmp_path: Path, measured: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert learn(tmp_path, measured) == 2
    err = capsys.readouterr().err
    assert "it was counted on fake, which says nothing of a GPU's memory" in err
    assert "kvplan measure --device cuda" in err


def test_what_was_measured_on_a_gpu_becomes_a_profile(
    tmp_path: Path, measured: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    card = {"measured_on": "NVIDIA H100 80GB HBM3", "gpu_total_gib": 79.19, "non_torch_gib": 1.5}
    host = tmp_path / "host.yaml"
    assert learn(tmp_path, measured | card, "-o", str(host)) == 0
    profile = read_profile(host)
    assert (profile.gpus, profile.non_torch.starts) == (("H100-SXM-80GB",), 1)
    assert "1 start on H100-SXM-80GB" in capsys.readouterr().err
