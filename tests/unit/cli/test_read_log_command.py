"""`kvplan read-log` and `kvplan read-metrics`: forms of output and exit codes."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from kvplan.cli.main import run

DATA = Path(__file__).parents[2] / "data"
LOG = "vllm-crash-loop.log"


@pytest.fixture(autouse=True)
def _beside_the_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(DATA / "logs")


def test_a_pipe_gets_json_lines(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["read-log", LOG]) == 0
    out, err = capsys.readouterr()
    records = [json.loads(line) for line in out.splitlines()]
    assert [record["outcome"] for record in records] == [
        "max_length_too_large",
        "max_length_too_large",
        "started",
    ]
    assert (records[0]["source"], records[0]["gpu"]) == (f"{LOG}:1", None)
    assert err == "3 starts found.\n"


def test_quiet_says_nothing_more(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--quiet", "read-log", LOG]) == 0
    assert capsys.readouterr().err == ""


def test_json_is_one_object(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["read-log", LOG, "--format", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["schema"] == "kvplan.measurements/1"
    assert len(data["records"]) == 3


def test_a_terminal_gets_text(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("NO_COLOR", "1")
    assert run(["read-log", "vllm-0.7.3-v0-tp2.log"]) == 0
    assert capsys.readouterr().out.startswith("vllm 0.7.3 · deepseek-ai/DeepSeek-R1-Distill")


@pytest.mark.parametrize("name", ["vllm-0.7.3-v0-tp2.log", "vllm-crash-loop.log"])
def test_text_as_it_looks(
    name: str, capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion
) -> None:
    assert run(["read-log", name, "--format", "text"]) == 0
    assert capsys.readouterr().out == snapshot


def test_metrics_as_they_look(
    capsys: pytest.CaptureFixture[str],
    snapshot: SnapshotAssertion,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(DATA / "metrics")
    assert run(["read-metrics", "vllm-0.33.0-dp.prom", "--format", "text"]) == 0
    assert run(["read-metrics", "vllm-0.8.5.prom", "--format", "text"]) == 0
    assert capsys.readouterr().out == snapshot


def test_standard_input_is_read(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = (DATA / "logs" / LOG).read_bytes()
    stdin = io.TextIOWrapper(io.BufferedReader(io.BytesIO(data)))  # type: ignore[type-var]
    monkeypatch.setattr(sys, "stdin", stdin)
    assert run(["read-log", "-"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[0])["source"] == "standard input:1"


def cards(capsys: pytest.CaptureFixture[str], *words: str) -> list[str | None]:
    """The GPU of each record of a command."""
    assert run(["read-log", *words, "--format", "jsonl"]) == 0
    return [json.loads(line)["gpu"] for line in capsys.readouterr().out.splitlines()]


def test_a_named_card_is_kept_in_every_record(capsys: pytest.CaptureFixture[str]) -> None:
    assert cards(capsys, LOG) == [None] * 3
    assert cards(capsys, LOG, "--gpu", "H100 SXM") == ["H100-SXM-80GB"] * 3


def test_the_card_that_a_log_names_is_kept(capsys: pytest.CaptureFixture[str]) -> None:
    named = cards(capsys, "llamacpp-b6123-window.log", "--gpu", "H100 SXM")
    assert named == ["NVIDIA GeForce RTX 5090"]


def test_a_named_card_changes_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    run(["read-log", LOG])
    without = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    run(["read-log", LOG, "--gpu", "H100 SXM"])
    named = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert named == [{**record, "gpu": "H100-SXM-80GB"} for record in without]


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["read-log", LOG, "--gpu", "Voodoo 2"], 2, "Voodoo 2"),
        (["read-log", "expected.json"], 2, "No start of an engine was found"),
        (["read-log", "nowhere.log"], 2, "There is no file"),
        (["read-log", "."], 2, "directory"),
        (["read-metrics", LOG], 2, "not a Prometheus page"),
        (["read-metrics", "http://127.0.0.1:9/metrics"], 3, "Nobody can be asked there"),
        (["read-metrics", "file:///x"], 2, "not read over"),
        (["read-log", LOG, "--format", "xml"], 2, "xml"),
    ],
)
def test_errors(
    words: list[str], code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(words) == code
    out, err = capsys.readouterr()
    assert (out, err.startswith("error: ")) == ("", True)
    assert message in err
    assert "hint: " in err
