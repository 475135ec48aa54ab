"""Start-up stays light: which modules a command may load, counted and named."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

HEAVY = {"pydantic", "pydantic_core", "rich", "yaml", "huggingface_hub", "torch", "numpy", "pynvml"}
# A bare interpreter has about 35; typer brings most of the rest, and every command one or two.
MOST_MODULES = 195


def _loaded(environment: dict[str, str], *words: str) -> set[str]:
    code = (
        "import json, sys\n"
        "from kvplan.cli.main import run\n"
        f"run({list(words)!r})\n"
        "print(json.dumps(sorted(sys.modules)), file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        capture_output=True,
        encoding="utf-8",
        check=True,
        timeout=60,
    )
    return set(json.loads(done.stderr.splitlines()[-1]))


def test_help_loads_nothing_heavy(environment: dict[str, str]) -> None:
    modules = _loaded(environment, "--help")
    assert not HEAVY & modules
    assert len(modules) <= MOST_MODULES


def test_the_package_alone_loads_nothing_heavy(environment: dict[str, str]) -> None:
    code = "import kvplan, sys; sys.exit(', '.join(sys.modules.keys() & set(sys.argv[1:])))"
    done = subprocess.run(
        [sys.executable, "-c", code, *HEAVY],
        env=environment,
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=60,
    )
    assert done.stderr.strip() == ""


@pytest.mark.parametrize("wanted", ["text", "json", "csv", "markdown"])
def test_an_offline_plan_loads_only_what_it_needs(environment: dict[str, str], wanted: str) -> None:
    modules = _loaded(
        environment,
        *("size", "meta-llama/Llama-3.1-8B-Instruct", "--gpu", "H100", "--offline"),
        *("--format", wanted),
    )
    assert not {"huggingface_hub", "torch", "numpy", "pynvml"} & modules
    assert ("rich" in modules) == (wanted == "text")
