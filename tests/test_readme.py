"""What the README shows is what the commands print.

To accept a changed output: python tests/test_readme.py, then read the difference.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
_BLOCK = re.compile(r"```console\n\$ (?P<command>[^\n]+)\n(?P<output>.*?)```", re.DOTALL)
_PYTHON = re.compile(r"```python\n(?P<code>.*?)```", re.DOTALL)
_CUT = "[...]"


def blocks(text: str) -> list[re.Match[str]]:
    """Every shown command with its shown output."""
    return list(_BLOCK.finditer(text))


def printed(command: str, home: Path) -> str:
    """What the command prints on a terminal of 100 columns without colour."""
    words = shlex.split(command)
    start = [sys.executable, "-m", "kvplan"] if words[0] == "kvplan" else [sys.executable]
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "HF_HOME": str(home),
        "COLUMNS": "100",
        "NO_COLOR": "1",
        "PYTHONIOENCODING": "utf-8",
    }
    ran = subprocess.run(
        [*start, *words[1:]],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    assert "Traceback" not in ran.stderr
    return "".join(f"{line.rstrip()}\n" for line in ran.stdout.splitlines())


def shown(full: str, old: str) -> str:
    """The output as the README shows it: cut where it was cut before."""
    if _CUT not in old:
        return full
    kept = old.split(_CUT, maxsplit=1)[0].count("\n")
    return "".join(full.splitlines(keepends=True)[:kept]) + f"{_CUT}\n"


@pytest.mark.parametrize("index", range(4))
def test_shown_output_is_what_the_command_prints(index: int, tmp_path: Path) -> None:
    block = blocks(README.read_text(encoding="utf-8"))[index]
    assert block["output"] == shown(printed(block["command"], tmp_path), block["output"])


def test_every_shown_command_is_tested() -> None:
    assert len(blocks(README.read_text(encoding="utf-8"))) == 4


def test_python_example_prints_what_its_comments_say(capsys: pytest.CaptureFixture[str]) -> None:
    match = _PYTHON.search(README.read_text(encoding="utf-8"))
    assert match is not None
    exec(compile(match["code"], "README.md", "exec"), {})  # noqa: S102 - our own README
    said = re.findall(r"# (.+)$", match["code"], re.MULTILINE)
    got = capsys.readouterr().out.splitlines()
    assert [line.split(",")[0] for line in got] == [line.split(",")[0] for line in said]


def main() -> None:
    """Writes the present output into the README."""
    import tempfile  # noqa: PLC0415 - only for this

    with tempfile.TemporaryDirectory() as home:
        text = README.read_text(encoding="utf-8")
        README.write_text(
            _BLOCK.sub(
                lambda m: (
                    f"```console\n$ {m['command']}\n"
                    f"{shown(printed(m['command'], Path(home)), m['output'])}```"
                ),
                text,
            ),
            encoding="utf-8",
        )


if __name__ == "__main__":
    main()
