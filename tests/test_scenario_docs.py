"""docs/scenarios.md has every key and every name there is; examples and the action run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest
import yaml
from pydantic import BaseModel

from kvplan.reports.render_check import CheckFormat
from kvplan.scenario import figures, schema
from tests.scenario_files import one, questions, write

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs" / "scenarios.md").read_text(encoding="utf-8")
CI = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```yaml\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
MODELS: list[type[BaseModel]] = [
    schema.Scenario,
    schema.Workload,
    schema.Prefix,
    schema.Sessions,
    schema.Prices,
    schema.Pool,
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_every_key_is_documented(model: type[BaseModel]) -> None:
    for key in model.model_fields:
        assert f"`{key}`" in TEXT


def test_every_key_of_a_file_is_documented() -> None:
    for name, field in schema.ScenarioFile.model_fields.items():
        assert f"| `{field.alias or name}` |" in TEXT


def test_every_short_name_and_format_is_documented() -> None:
    for name in (*figures.SHORT, *figures.COMPUTED, *get_args(CheckFormat)):
        assert f"`{name}`" in TEXT or f"`--format {name}`" in TEXT


@pytest.mark.parametrize("block", BLOCKS)
def test_examples_are_scenario_files(block: str, tmp_path: Path) -> None:
    path = tmp_path / "kvplan.yaml"
    path.write_text(block, encoding="utf-8")
    assert len(questions(path)) in (1, 8)


def test_yaml_in_the_ci_page_is_yaml() -> None:
    blocks = re.findall(r"^```yaml\n(.*?)^```$", CI, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 3
    for block in blocks:
        assert yaml.safe_load(block)


@pytest.mark.parametrize(("tp", "code"), [("1", 0), ("3", 4)])
def test_the_steps_of_the_action_run(tmp_path: Path, tp: str, code: int) -> None:
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    install, check = action["runs"]["steps"]
    assert "$GITHUB_ACTION_PATH" in install["run"]
    write(tmp_path, one("context: 8k\nconcurrency: 4"), "deploy/a.yaml")
    summary = tmp_path / "summary.md"
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    script = bin_folder / "kvplan"
    script.write_text(f'#!/bin/sh\nexec {sys.executable} -m kvplan "$@"\n', encoding="utf-8")
    script.chmod(0o755)
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", check["run"]],
        cwd=tmp_path,
        env={
            "PATH": f"{bin_folder}:{os.environ['PATH']}",
            "HOME": str(tmp_path),
            "GITHUB_STEP_SUMMARY": str(summary),
            "KVPLAN_FILES": "deploy",
            "KVPLAN_ARGUMENTS": f"--offline --set tp={tp}",
        },
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    assert done.returncode == code, done.stderr
    assert done.stdout.startswith("::error" if code else "::notice")
    assert summary.read_text(encoding="utf-8").startswith("<!-- kvplan check -->")


def test_the_hook_takes_the_files_that_it_says() -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    pattern = re.compile(hook["files"])
    for name in ("kvplan.yaml", "deploy/kvplan.yml", "deploy/chat.kvplan.yaml"):
        assert pattern.search(name)
    for name in ("kvplan.yaml.txt", "deploy/chat.yaml", "my-kvplan.yaml"):
        assert not pattern.search(name)
