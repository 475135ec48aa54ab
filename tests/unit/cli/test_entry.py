"""The console entry: an interrupt in its imports is silent, and nothing is imported before it."""

from __future__ import annotations

import subprocess
import sys

INTERRUPTED = """
import sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "typer":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Finder())
from kvplan.cli.entry import main
main()
"""
IMPORTED = """
import sys
before = set(sys.modules)
import kvplan.cli.entry
print(sorted(set(sys.modules) - before))
"""


def _python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )


def test_an_interrupt_while_importing_is_silent() -> None:
    done = _python(INTERRUPTED)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_the_entry_imports_nothing_that_takes_time() -> None:
    loaded = ["__future__", "kvplan", "kvplan._version", "kvplan.cli", "kvplan.cli.entry"]
    assert set(eval(_python(IMPORTED).stdout)) <= set(loaded)  # noqa: S307 - a list of names
