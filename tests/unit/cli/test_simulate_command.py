"""`kvplan simulate` from its words to its report."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kvplan.cli.main import run
from kvplan.cli.simulate_progress import ProgressLine
from kvplan.cli.simulate_source import Stream
from kvplan.cli.traffic_source import TrafficFlags
from kvplan.planning.simulate.scheduler import Scheduler

MODEL = "meta-llama/Llama-3.1-8B-Instruct"
PLACE = [MODEL, "--gpu", "H100", "--offline"]
DRAWN = ["--lengths", "500/50", "--rate", "5/s", "--requests", "60"]


@pytest.fixture
def trace(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "trace.jsonl"
    rows = [
        {"timestamp": 1000 * i, "input_length": 1024, "output_length": 8, "hash_ids": [0, i]}
        for i in range(30)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def simulated(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, object]:
    assert run(["simulate", *PLACE, *words, "--format", "json"]) == 0
    found: dict[str, object] = json.loads(capsys.readouterr().out)
    return found


def test_drawn_requests(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["simulate", *PLACE, *DRAWN]) == 0
    out = capsys.readouterr().out
    assert out.startswith("60 requests finished")
    assert "steps get 80% of the GPU's bandwidth" in out


def test_the_seed_decides(capsys: pytest.CaptureFixture[str]) -> None:
    one, same, other = (simulated(capsys, *DRAWN, "--seed", seed) for seed in ("1", "1", "2"))
    assert one == same
    assert one["simulated_s"] != other["simulated_s"]


def test_a_trace_with_shared_blocks(capsys: pytest.CaptureFixture[str], trace: Path) -> None:
    found = simulated(capsys, "--traffic", str(trace), "--curve")
    assert found["prefixes"]["hit_tokens"] == 29 * 512  # type: ignore[index]
    assert found["seed"] is None
    curve = found["curve"]
    assert curve[-1]["hit_rate"] == pytest.approx(29 * 32 / (30 * 64))  # type: ignore[index]


def test_a_trace_can_come_faster(capsys: pytest.CaptureFixture[str], trace: Path) -> None:
    slow = simulated(capsys, "--traffic", str(trace))
    fast = simulated(capsys, "--traffic", str(trace), "--speed", "10")
    assert slow["simulated_s"] > 8 * fast["simulated_s"]  # type: ignore[operator]


def test_conversations_a_day_and_a_host(capsys: pytest.CaptureFixture[str]) -> None:
    found = simulated(
        capsys, "--lengths", "200/100", "--turns", "4", "--think", "5s", "--prefix", "1k",
        "--rate", "60/min", "--requests", "20", "--daily", "peak=2", "--start-at", "12h",
        "--tier", "host=10GiB@20GB", "--kv-budget", "1GiB",
    )  # fmt: skip
    assert found["requests"]["finished"] == 80  # type: ignore[index]
    assert found["prefixes"]["hit_tokens"] > 0  # type: ignore[index]


def test_tenants_of_conversations_do_not_share(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--lengths", "200/100", "--turns", "2", "--rate", "1/s", "--requests", "30"]
    alone, many = (
        simulated(capsys, *words, "--prefix", prefix)["prefixes"]["hit_tokens"]  # type: ignore[index]
        for prefix in ("2k", "2k,tenants=30")
    )
    # With one tenant all but the first conversation find it; of thirty, few meet their own again.
    assert alone > many + 10 * 2048


def test_a_turn_comes_after_the_answer(capsys: pytest.CaptureFixture[str]) -> None:
    found = simulated(
        capsys, "--lengths", "100/100", "--turns", "5", "--think", "0s", "--rate", "1/h",
        "--requests", "1", "--step-time", "step=1s",
    )  # fmt: skip
    assert found["running"]["max"] == 1  # type: ignore[index]
    assert found["latency"]["whole"]["max"] == pytest.approx(100, abs=1)  # type: ignore[index]


def test_a_model_without_a_maximum_takes_what_the_engine_takes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    place = ["state-spaces/mamba-2.8b-hf", "--gpu", "H100", "--offline"]
    assert run(["simulate", *place, "--lengths", "1k/50", "--rate", "5/s", "--requests", "9"]) == 0
    assert capsys.readouterr().out.startswith("9 requests finished")


def test_times_of_steps_can_be_given(capsys: pytest.CaptureFixture[str]) -> None:
    found = simulated(capsys, *DRAWN, "--step-time", "step=10ms")
    assert found["latency"]["between_tokens"]["mean"] == pytest.approx(0.01)  # type: ignore[index]
    # Nothing of the steps; only the pool's size is a range.
    assert [text.split(" has ")[0] for text in found["assumed"]] == ["the pool"]  # type: ignore[attr-defined]


def test_arrivals_end_after_a_while(capsys: pytest.CaptureFixture[str]) -> None:
    found = simulated(
        capsys, "--lengths", "500/50", "--rate", "5/s", "--burst", "0", "--duration", "10s"
    )
    assert found["requests"]["arrived"] == 50  # type: ignore[index]


def test_of_two_replicas_one_gets_half(capsys: pytest.CaptureFixture[str]) -> None:
    found = simulated(capsys, *DRAWN, "--dp", "2")
    assert found["requests"]["arrived"] == 30  # type: ignore[index]
    assert any("one of 2 replicas" in text for text in found["assumed"])  # type: ignore[union-attr]


@pytest.mark.parametrize("name", ["a.json", "a.csv", "a.svg", "a.txt"])
def test_files_by_their_ending(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str
) -> None:
    path = tmp_path / name
    assert run(["simulate", *PLACE, *DRAWN, "--output", str(path)]) == 0
    starts = {"a.json": "{", "a.csv": "start_s,", "a.svg": "<svg", "a.txt": "60 requests"}
    assert path.read_text(encoding="utf-8").startswith(starts[name])
    assert "60 requests finished" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ([], 2),
        (["--lengths", "500/50"], 2),
        (["--lengths", "500", "--rate", "5/s"], 2),
        (["--traffic", "nowhere.csv"], 2),
        (["--traffic", "nowhere.csv", "--rate", "5/s"], 2),
        (["--traffic", "-", "--curve"], 2),
        ([*DRAWN, "--tier", "host=1GiB@floppy"], 2),
        (["--lengths", "50% 9/9 + 50% 5/5", "--rate", "1/s", "--turns", "2"], 2),
        ([*DRAWN, "--context", "auto"], 2),
        ([*DRAWN, "--tier", "tape=1GiB@1GB"], 2),
        ([*DRAWN, "--engine", "llama.cpp"], 4),
        ([*DRAWN, "-o", 'speculative_config={"method": "ngram", "num_speculative_tokens": 2}'], 4),
    ],
)
def test_questions_without_an_answer(
    capsys: pytest.CaptureFixture[str], words: list[str], code: int
) -> None:
    assert run(["simulate", *PLACE, *words]) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "hint:" in captured.err
    assert "Traceback" not in captured.err


def test_ctrl_c_reports_what_there_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    step = Scheduler.step
    steps = iter(range(10**9))

    def interrupted(self: Scheduler) -> bool:
        if next(steps) == 400:
            raise KeyboardInterrupt
        return step(self)

    monkeypatch.setattr(Scheduler, "step", interrupted)
    assert run(["simulate", *PLACE, *DRAWN]) == 130
    assert capsys.readouterr().out.startswith("Interrupted: ")


def test_a_real_ctrl_c() -> None:
    words = ["simulate", *PLACE, "--lengths", "500/50", "--rate", "5/s", "--requests", "10000000"]
    with subprocess.Popen(
        [sys.executable, "-c", _ALIVE, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "running\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert out.startswith("Interrupted: ")
    assert "Traceback" not in err


# Says on stderr when the simulation has begun, then goes on as the command does.
_ALIVE = """
import sys
from kvplan.cli.main import run
from kvplan.planning.simulate.scheduler import Scheduler
start = Scheduler.start
def begun(self, requests):
    start(self, requests)
    sys.stderr.write("running\\n")
    sys.stderr.flush()
Scheduler.start = begun
sys.exit(run(sys.argv[1:]))
"""


def test_progress_is_for_terminals(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    line = ProgressLine(quiet=False, total=10)
    line.show(5, 1.0)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    line = ProgressLine(quiet=False, total=10)
    line.show(5, 1.0)
    line.clear()
    err = capsys.readouterr().err
    assert "5 requests done, 1 s simulated" in err
    assert err.endswith("\r")
    ProgressLine(quiet=True).show(5, 1.0)
    assert capsys.readouterr().err == ""


def test_a_pool_that_is_given_has_no_range(capsys: pytest.CaptureFixture[str]) -> None:
    assert "the pool has its likely" in str(simulated(capsys, *DRAWN)["assumed"])
    given = simulated(capsys, *DRAWN, "--kv-budget", "20GiB")
    assert "the pool has its likely" not in str(given["assumed"])


def test_a_bar_shows_how_much_is_done(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, trace: Path
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setattr("kvplan.planning.simulate.run._LOOK", 1)
    monkeypatch.setattr("kvplan.cli.simulate_progress._PAUSE_S", 0.0)
    for words in ([*DRAWN], ["--traffic", str(trace)]):
        assert run(["simulate", *PLACE, *words]) == 0
        err = capsys.readouterr().err
        assert "[............" in err
        assert "[###########" in err


def test_the_bar_knows_how_many_come(trace: Path) -> None:
    drawn = Stream(TrafficFlags(lengths="5/5", rate="1/s", turns="3"), 0, requests="20")
    assert drawn.about() == 60
    assert Stream(TrafficFlags(trace=str(trace)), 0).about() == 30
    assert Stream(TrafficFlags(trace=str(trace)), 0, requests="7").about() == 7
    assert Stream(TrafficFlags(trace="-"), 0).about() is None
    lasting = Stream(TrafficFlags(lengths="5/5", rate="1/s"), 0, duration="1h")
    assert lasting.about() is None
