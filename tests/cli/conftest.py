"""The command itself, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Variables for the process: no colour wishes, no network habits, a home of its own."""
    kept = {name: os.environ[name] for name in ("PATH", "HF_HOME", "LANG") if name in os.environ}
    return {**kept, "HOME": str(tmp_path), "PYTHONWARNINGS": "error"}


@pytest.fixture
def kvplan(environment: dict[str, str], tmp_path: Path) -> Command:
    """Runs ``kvplan WORDS...`` in an empty folder and returns what came out."""

    def command(
        *words: str, variables: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "kvplan", *words],
            cwd=tmp_path,
            env={**environment, **(variables or {})},
            capture_output=True,
            encoding="utf-8",
            timeout=60,
            check=False,
        )

    return command
