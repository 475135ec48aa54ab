"""`kvplan measure`: what it prints, its record, and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from small_models import SMALL

from kvplan.cli.main import run
from kvplan.measure import needs_torch


@pytest.fixture
def words(tmp_path: Path) -> list[str]:
    """A small model's command line."""
    (tmp_path / "config.json").write_text(json.dumps(SMALL["GQA"]))
    options = ["-o", "max_num_batched_tokens=48", "-o", "max_num_seqs=4", "--context", "64"]
    return ["measure", str(tmp_path), "--gpu", "custom:4GiB", "--offline", *options]


def test_without_torch(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(needs_torch, "find_spec", lambda _: None)
    assert run([*words, "--device", "cpu"]) == 3
    assert "kvplan-sizer[measure]" in capsys.readouterr().err


def test_text(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    assert run([*words, "--device", "cpu"]) in (0, 1)
    out = capsys.readouterr().out
    assert "on cpu" in out.splitlines()[0]
    assert "kv_cache" in out
    assert "not measured: no graphs are captured" in out


def test_exit_code_is_the_lines(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    code = run([*words, "--device", "fake", "--format", "json"])
    found = json.loads(capsys.readouterr().out)
    outcomes = {line["outcome"] for line in found["lines"]}
    assert code == (1 if "off" in outcomes else 0)
    assert found["schema"] == "kvplan.measured/1"


def test_records_are_appended(words: list[str], tmp_path: Path) -> None:
    pytest.importorskip("torch")
    records = tmp_path / "records.jsonl"
    for _ in range(2):
        run([*words, "--device", "fake", "--record", str(records)])
    first, second = (json.loads(line) for line in records.read_text().splitlines())
    assert first == second
    assert first["num_gpu_blocks"] > 0


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--device", "tpu"], "There is no device 'tpu'"),
        (["--device", "cpu", "--layers", "0"], "too few"),
        (["--device", "cpu", "--tolerance", "7"], "tolerance"),
        (["--device", "cpu", "--engine", "all"], "only vLLM's can"),
        (["--device", "cpu", "--engine", "sglang"], "only vLLM's can"),
        (["--device", "cpu", "--engine", "vllm,sglang"], "only vLLM's can"),
    ],
)
def test_wrong_arguments(
    words: list[str], more: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch")
    assert run([*words, *more]) == 2
    assert message in capsys.readouterr().err


def test_a_planned_gpu_is_needed_without_a_device(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch")
    without = [word for word in words if word not in ("--gpu", "custom:4GiB")]
    assert run([*without, "--device", "cpu"]) == 2
    assert "--gpu is missing" in capsys.readouterr().err


def test_a_release_may_be_named(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    run([*words, "--device", "fake", "--engine", "vllm==0.21.0", "--format", "json"])
    record = json.loads(capsys.readouterr().out)["record"]
    assert record["engine_version"] == "0.21.0"
