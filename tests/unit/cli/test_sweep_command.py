"""`kvplan sweep` from its words to its report."""

from __future__ import annotations

import csv
import io
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kvplan.cli.main import run
from kvplan.cli.sweep_progress import ProgressBar

MODEL = "meta-llama/Llama-3.1-8B-Instruct"
WORDS = ["sweep", MODEL, "--offline"]
GRID = ["--vary", "context=4k..16k*2", "--vary", "kv-dtype=auto,fp8", "--vary", "gpu=L4,H100*"]


def test_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*WORDS, *GRID]) == 0
    out, err = capsys.readouterr()
    assert "H100-SXM-80GB" in out
    assert err == ""


@pytest.mark.parametrize(
    "name", ["a.csv", "a.json", "a.jsonl", "a.md", "a.svg", "a.txt", "a.parquet", "a.png"]
)
def test_files_by_their_endings(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str
) -> None:
    for ending, library in ((".parquet", "pyarrow"), (".png", "resvg_py")):
        if name.endswith(ending):
            pytest.importorskip(library)
    path = tmp_path / name
    assert run([*WORDS, *GRID, "--output", str(path)]) == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert "points" in err
    assert path.stat().st_size > 500
    assert list(tmp_path.iterdir()) == [path]


def test_base_flags_hold_at_every_point(capsys: pytest.CaptureFixture[str]) -> None:
    words = [
        "--gpu",
        "H100",
        "--tp",
        "2",
        "--dp",
        "2",
        "-o",
        "max_num_seqs=16",
        "--kv-dtype",
        "fp8",
    ]
    assert (
        run([*WORDS, *words, "--vary", "context=4k,8k", "--concurrency", "40", "--format", "csv"])
        == 0
    )
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    for row in rows:
        given = [row[name] for name in ("tp", "dp", "max_num_seqs", "kv_dtype", "concurrency")]
        assert given == ["2", "2", "16", "fp8", "40"]
        assert (row["verdict"], row["requests"]) == ("does_not_fit", "32")


def test_a_command_line_can_be_the_base(capsys: pytest.CaptureFixture[str]) -> None:
    command = f"vllm serve {MODEL} --max-num-seqs 8 --tensor-parallel-size 2"
    words = ["sweep", "--offline", "--gpu", "L4", "--from-command", command]
    assert run([*words, "--vary", "context=4k,8k", "--format", "jsonl", "-q"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(row["tp"], row["max_num_seqs"], row["requests"]) for row in rows] == [(2, 8, 8)] * 2


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--vary", "context=4k"], 2, "--gpu is missing"),
        (["--gpu", "H100"], 2, "Nothing is varied"),
        (["--gpu", "H100", "--vary", "context"], 2, "does not say what is varied"),
        (["--gpu", "H100", "--vary", "context=4k", "--vary", "context=8k"], 2, "varied twice"),
        (["--gpu", "H100", "--vary", "contxt=4k"], 2, "Did you mean context"),
        (["--gpu", "H100", "--vary", "max_num_seq=4"], 2, "max_num_seqs"),
        (["--vary", "gpu=H199*", "--vary", "context=lots"], 2, "H199"),
        (["--gpu", "H100", "--vary", "context=4k", "--rate", "5/s"], 2, "Add --simulate"),
        (["--gpu", "H100", "--vary", "context=4k", "--output", "x.docx"], 2, ".docx"),
        (["--gpu", "H100", "--vary", "tp=1,2", "--engine", "all"], 2, "--vary engine="),
        (["--gpu", "H100", "--vary", "tp=3,5"], 4, ""),
        (["--gpu", "L4", "--vary", "context=128k,256k"], 0, ""),
        (["--gpu", "H100", "--vary", "model=no/such-model-anywhere"], 3, "no/such-model"),
        (["--simulate", "--gpu", "H100", "--vary", "rate=1,2"], 2, "what traffic there is"),
        (["--simulate", "--gpu", "H100", "--vary", "rate=1,2", "--lengths", "x"], 2, "'x'"),
        (["--simulate", "--gpu", "H100", "--vary", "burst=900", "--lengths", "1k/1", "--rate",
          "1/s"], 2, "burst"),
        (["--simulate", "--gpu", "H100", "--vary", "concurrency=1,2"], 2, "no concurrency"),
        (["--simulate", "--gpu", "H100", "--vary", "max_num_seq=1,2", "--lengths", "1k/9",
          "--rate", "1/s"], 2, "max_num_seqs"),
        (["--simulate", "--gpu", "H100", "--vary", "tp=3,5", "--lengths", "1k/9", "--rate",
          "1/s"], 4, ""),
    ],
)  # fmt: skip
def test_exit_codes(
    capsys: pytest.CaptureFixture[str], words: list[str], code: int, said: str
) -> None:
    model = [] if any("model=" in word for word in words) else [MODEL]
    assert run(["sweep", *model, "--offline", *words]) == code
    assert said in capsys.readouterr().err


def test_a_file_that_was_there_stays_where_writing_fails(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("resvg_py")
    path = tmp_path / "a.png"
    path.write_text("before", encoding="utf-8")
    monkeypatch.setattr("kvplan.reports.sweep_png.find_spec", lambda _: None)
    assert run([*WORDS, *GRID, "--output", str(path)]) == 2
    assert path.read_text(encoding="utf-8") == "before"
    assert "png" in capsys.readouterr().err


@pytest.mark.parametrize(
    "more", [[], ["--simulate", "--lengths", "1k/50", "--requests", "200", "--jobs", "2"]]
)
def test_an_interrupt_prints_what_there_is(tmp_path: Path, more: list[str]) -> None:
    varied = ["--vary", "rate=0.1..50+0.1"] if more else ["--vary", "context=1k..1000k+7"]
    words = [*WORDS, "--gpu", "H100", *more, *varied, "--format", "jsonl"]
    for patience in (4, 12, 30):  # a busy machine needs longer to get to the first rows
        out = _interrupted(words, tmp_path, patience)
        if out:
            break
    rows = [json.loads(line) for line in out.splitlines()]
    assert rows
    assert all(row.get("status", "simulated") == "simulated" for row in rows)


def _interrupted(words: list[str], folder: Path, seconds: float) -> str:
    """What a sweep prints that is interrupted after so long."""
    code = "import sys; from kvplan.cli.main import main; sys.argv[0] = 'kvplan'; main()"
    with subprocess.Popen(
        [sys.executable, "-c", code, *words],
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        time.sleep(seconds)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "Interrupted" in err
    assert "Traceback" not in err
    return out


def test_progress_is_for_terminals(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kvplan.cli.sweep_progress._PAUSE_S", 0.0)
    silent = ProgressBar(quiet=False)
    silent.show(1, 2)
    silent.clear()
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    bar = ProgressBar(quiet=False)
    bar.show(500, 1000)
    bar.clear()
    assert "[###############...............] 500 of 1,000 points" in capsys.readouterr().err
    quiet = ProgressBar(quiet=True)
    quiet.show(1, 2)
    assert capsys.readouterr().err == ""
