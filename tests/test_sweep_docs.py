"""docs/sweep.md: its commands and its program run, and it has every column and input."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from kvplan.cli.main import run
from kvplan.planning.sweep.words import KINDS
from kvplan.sweep_result import FIGURES, SAID

TEXT = (Path(__file__).parents[1] / "docs" / "sweep.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```bash\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
COMMANDS = [line for block in BLOCKS for line in block.splitlines()]
PROGRAMS = re.findall(r"^```python\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_runs(
    command: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run([*shlex.split(command)[1:], "--offline"]) == 0
    out, err = capsys.readouterr()
    assert "points" in out + err


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_runs(program: str) -> None:
    exec(compile(program, "docs/sweep.md", "exec"), {})  # noqa: S102 - that is the test


def test_every_column_and_input_is_explained() -> None:
    for name in (*FIGURES, *SAID, "notes", *KINDS):
        if name != "engine_version":
            assert f"`{name}`" in TEXT, name


def test_there_are_examples() -> None:
    assert len(COMMANDS) >= 7
    assert len(PROGRAMS) == 1
