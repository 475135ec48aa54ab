"""The benchmarks run. What they measure is for people to read, not for tests to judge."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.mark.parametrize(
    ("script", "options", "rows"),
    [
        ("startup.py", ["--runs", "1"], ["--help", "size --offline (json)"]),
        (
            "evaluate.py",
            ["--seconds", "0.01", "meta-llama/Llama-3.1-8B-Instruct"],
            ["figures", "plan with advice"],
        ),
        ("scenarios.py", ["--scenarios", "10"], ["lock", "check --locked", "10 scenarios"]),
        (
            "sweep.py",
            ["--contexts", "3", "--concurrencies", "5", "--format", "csv"],
            ["30 points", "kvplan.sweep", "kvplan sweep, csv"],
        ),
        ("capacity.py", ["--seconds", "0.01"], ["uniform", "hybrid", "packed"]),
    ],
)
def test_a_benchmark_runs(script: str, options: list[str], rows: list[str]) -> None:
    command = [sys.executable, str(BENCHMARKS / script), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert all(row in done.stdout for row in rows)
