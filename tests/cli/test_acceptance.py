"""The command as a user runs it: exit codes, streams, pipes, terminals."""

from __future__ import annotations

import csv
import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest

Command = Callable[..., subprocess.CompletedProcess[str]]
LLAMA_70B = (
    *("size", "meta-llama/Llama-3.1-70B-Instruct", "--gpu", "H100-SXM-80GB", "--tp", "4"),
    *("--context", "32k", "--offline"),
)


def test_a_plan_that_fits(kvplan: Command) -> None:
    done = kvplan(*LLAMA_70B, "--concurrency", "4")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Fits: 4 × H100-SXM-80GB hold ")
    assert "you asked for 4." in done.stdout.splitlines()[0]
    assert done.stderr == ""


def test_a_plan_that_does_not(kvplan: Command) -> None:
    done = kvplan(*LLAMA_70B, "--concurrency", "500")
    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith("Does not fit: ")
    assert "What to change" in done.stdout


def test_a_plan_that_the_engine_refuses(kvplan: Command) -> None:
    done = kvplan(
        *("size", "meta-llama/Llama-3.1-70B-Instruct", "--gpu", "H100-SXM-80GB", "--tp", "3"),
        *("--context", "32k", "--offline", "--format", "json"),
    )
    assert done.returncode == 4, done.stderr
    assert json.loads(done.stdout)["verdict"] == "refused"


def test_the_formats_agree(kvplan: Command) -> None:
    plan = json.loads(kvplan(*LLAMA_70B, "--format", "json").stdout)
    rows = list(csv.DictReader(StringIO(kvplan(*LLAMA_70B, "--format", "csv").stdout)))
    assert [(row["name"], int(row["bytes"])) for row in rows] == [
        (line["name"], line["bytes"]) for line in plan["ledger"]
    ]
    tokens = f"{plan['capacity']['tokens']:,}"
    assert tokens in kvplan(*LLAMA_70B).stdout
    assert tokens in kvplan(*LLAMA_70B, "--format", "markdown").stdout


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("size", "no-such/model", "--gpu", "H100", "--offline"), 3),
        (("size", "meta-llama/Llama-3.1-8B-Instruct", "--gpu", "H1000", "--offline"), 2),
        (("size", "meta-llama/Llama-3.1-8B-Instruct", "--gpu", "A100", "--offline"), 2),
        (("size", "missing/config.json", "--gpu", "H100"), 2),
        (("size", "meta-llama/Llama-3.1-8B-Instruct", "--gpu", "L4", "--tp", "0"), 2),
        (("models", "show", "no-such/model"), 3),
        (("models", "search", "no such model"), 1),
        (("models", "list"), 0),
        (("models", "search", "llama"), 0),
        (("models", "show", "meta-llama/Llama-3.1-8B-Instruct"), 0),
        (("models", "explain", "meta-llama/Llama-3.1-8B-Instruct", "--offline"), 0),
        (("models",), 0),
        (("--version",), 0),
        (("--help",), 0),
        ((), 2),
    ],
)
def test_exit_codes(kvplan: Command, words: tuple[str, ...], code: int) -> None:
    done = kvplan(*words)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    if code > 1 and words:
        assert done.stdout == ""
        assert done.stderr.startswith("error: ")
        assert len(done.stderr.splitlines()) <= 2


@pytest.mark.parametrize("words", ["size --help", "--help", "--version", " ".join(LLAMA_70B)])
def test_a_closed_pipe_is_silent_and_no_error(environment: dict[str, str], words: str) -> None:
    pipe = f"{sys.executable} -m kvplan {words} | head -0; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", pipe], env=environment, capture_output=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_closed_stdout_is_silent_and_no_error(environment: dict[str, str]) -> None:
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m kvplan {' '.join(LLAMA_70B)} >&-"],
        env=environment,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("words", [" ".join(LLAMA_70B), "--help", "--version", "--show-completion"])
def test_a_full_disk_is_one_sentence(environment: dict[str, str], words: str) -> None:
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m kvplan {words} > /dev/full"],
        env=environment,
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert "No space left on device" in done.stderr
    assert len(done.stderr.splitlines()) == 2


@pytest.mark.parametrize(
    ("variables", "colored"),
    [({}, False), ({"FORCE_COLOR": "1"}, True), ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False)],
)
def test_colour_in_a_pipe(kvplan: Command, variables: dict[str, str], *, colored: bool) -> None:
    done = kvplan(*LLAMA_70B, variables=variables)
    assert ("\x1b[" in done.stdout) is colored


@pytest.mark.parametrize("columns", [60, 80, 100, 140])
def test_columns_are_honoured(kvplan: Command, columns: int) -> None:
    done = kvplan(*LLAMA_70B, "--explain", variables={"COLUMNS": str(columns)})
    assert max(len(line) for line in done.stdout.splitlines()) <= columns


def test_a_terminal_gets_colour_and_its_own_width(environment: dict[str, str]) -> None:
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 90, 0, 0))
    command = [sys.executable, "-m", "kvplan", *LLAMA_70B]
    with subprocess.Popen(
        command, env={**environment, "TERM": "xterm"}, stdout=slave, stderr=slave
    ) as process:
        os.close(slave)
        shown = _read_all(master)
    assert process.returncode == 0
    assert "\x1b[" in shown
    lines = re.sub(r"\x1b\[[0-9;]*m", "", shown).splitlines()
    assert 80 < max(len(line) for line in lines) <= 90


def _read_all(descriptor: int) -> str:
    chunks = []
    while True:
        try:
            chunk = os.read(descriptor, 65536)
        except OSError:  # the other side is closed
            break
        if not chunk:
            break
        chunks.append(chunk)
    os.close(descriptor)
    return b"".join(chunks).decode()


def test_an_encoding_without_the_glyphs_gets_ascii(kvplan: Command) -> None:
    done = kvplan(*LLAMA_70B, variables={"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0, done.stderr
    assert done.stdout.isascii()
    assert "4 x H100-SXM-80GB" in done.stdout


def test_a_report_in_a_file(kvplan: Command, tmp_path: Path) -> None:
    done = kvplan(*LLAMA_70B, "--output", "plan.json")
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "plan.json").read_text())["verdict"] == "fits"
    assert done.stdout == ""
    assert done.stderr.startswith("Fits: ")


def test_completion_of_gpus(environment: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "kvplan"],
        env={
            **environment,
            "_KVPLAN_COMPLETE": "complete_bash",
            "COMP_WORDS": "kvplan size --gpu H100-S",
            "COMP_CWORD": "3",
        },
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    assert "H100-SXM-80GB" in done.stdout.split()


def test_a_configuration_on_standard_input(environment: dict[str, str], tmp_path: Path) -> None:
    spec = Path(__file__).parents[2] / "model_specs" / "meta-llama--Llama-3.1-8B-Instruct.yaml"
    for name in ("-", "/dev/stdin"):
        done = subprocess.run(
            [sys.executable, "-m", "kvplan", "size", name, "--gpu", "H100", "--context", "8k"],
            input=spec.read_bytes(),
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            timeout=60,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, b"")
        assert b"holds" in done.stdout


def test_an_endpoint_that_is_no_address_is_one_sentence(kvplan: Command) -> None:
    words = [word for word in LLAMA_70B if word != "--offline"]
    done = kvplan(*words, variables={"HF_ENDPOINT": "http://127.0.0.1:99999"})
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: HF_ENDPOINT is not the address of a Hub.\n")
    assert len(done.stderr.splitlines()) == 2
