"""Input that is refused with a sentence, not with a traceback or not at all."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from measured_starts import CONFIG, record

from kvplan.cli.main import run

SCENARIO = """\
schema: kvplan.scenario/1
scenarios:
  chat: {model: Qwen/Qwen3-8B, gpu: H100-SXM-80GB, engine: vllm==0.33.0, context: 8k}
"""
ADDRESS = "https://user:s3cr3t@host/model"


@pytest.fixture
def loop(tmp_path: Path) -> Path:
    """A link that leads back to itself."""
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    return tmp_path / "a"


@pytest.mark.parametrize(
    "words",
    [
        ["size", "Qwen/Qwen3-8B", "--gpu", "H100", "--offline", "--format", "json"],
        ["models", "add", "Qwen/Qwen3-8B", "--offline"],
    ],
)
def test_output_on_a_loop_of_links(
    words: list[str], loop: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*words, "--output", str(loop)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "The report can't be written" in err


def test_a_lock_on_a_loop_of_links(loop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (loop.parent / "kvplan.yaml").write_text(SCENARIO)
    assert run(["lock", "--lock", str(loop), str(loop.parent / "kvplan.yaml"), "--offline"]) == 2
    assert "symbolic links" in capsys.readouterr().err


def calibrated(folder: Path, **stated: object) -> int:
    (folder / "org--toy").mkdir()
    (folder / "org--toy" / "config.json").write_text(json.dumps(CONFIG))
    common = {"model": "org/toy", "gpu": "H100", "tp": 1, "gpu_memory_utilization": 0.9}
    start = record(engine_version="0.30.0", max_model_len=4096, **(common | stated))
    (folder / "starts.jsonl").write_text(start.json_line() + "\n")
    words = [str(folder / "starts.jsonl"), "--configs", str(folder), "--offline"]
    return run(["calibrate", *words, "--output", str(folder / ("x" * 240))])


@pytest.mark.parametrize("gib", [20_000.0, -20_000.0])
@pytest.mark.parametrize(
    "name", ["weights_gib", "activation_peak_gib", "non_torch_gib", "available_kv_gib"]
)
def test_memory_that_no_card_has(
    name: str, gib: float, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert calibrated(tmp_path, **{name: gib}) == 2
    assert f"{name} is no memory of a card of" in capsys.readouterr().err


def test_memory_beyond_any_card_and_a_card_as_large(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert calibrated(tmp_path, gpu_total_gib=20_000.0, non_torch_gib=19_000.0) == 2
    assert "non_torch_gib is no memory of a card" in capsys.readouterr().err


def test_a_profile_in_a_file_with_a_long_name(tmp_path: Path) -> None:
    assert calibrated(tmp_path, non_torch_gib=1.0) == 0


def test_no_records_to_compare(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "none.jsonl").write_text("\n")
    assert run(["validate", str(tmp_path / "none.jsonl"), "--offline"]) == 2
    assert "has no records" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ADDRESS,
        f"{ADDRESS}@main",
        f"https://user:{'s3cr3t' * 20}@host/model",
        f"--model {ADDRESS}",
        f"Qwen/Qwen3-8B --max-model-len {ADDRESS}",
        f"Qwen/Qwen3-8B --speculative-config {ADDRESS}",
        f"Qwen/Qwen3-8B --config {ADDRESS}",
    ],
)
def test_a_password_in_an_address_is_not_repeated(
    words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["--from-command", f"vllm serve {words}", "--gpu", "H100", "--offline"]
    assert run(["size", *command]) == 2
    out, err = capsys.readouterr()
    assert err
    assert "s3cr3t" not in out + err
