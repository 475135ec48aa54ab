"""docs/scenarios.md has every key and every name there is; examples and the action run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path
from typing import get_args

import pytest
import yaml
from pydantic import BaseModel

from kvplan.reports.render_check import CheckFormat
from kvplan.scenario import figures, schema, workload
from tests.scenario_files import one, questions, write

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs" / "scenarios.md").read_text(encoding="utf-8")
CI = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```yaml\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
MODELS: list[type[BaseModel]] = [
    schema.Scenario,
    workload.Workload,
    workload.Prefix,
    workload.Sessions,
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
    assert re.compile(hook["exclude"]).search(".github/workflows/kvplan.yml")
    assert not re.compile(hook["exclude"]).search("deploy/kvplan.yaml")
    for name in ("kvplan.yaml.txt", "deploy/chat.yaml", "my-kvplan.yaml"):
        assert not pattern.search(name)


@pytest.mark.skipif(find_spec("check_jsonschema") is None, reason="check-jsonschema is missing")
@pytest.mark.parametrize(
    ("kind", "file"),
    [
        ("github-actions", "action.yml"),
        ("github-workflows", "examples/ci/.github/workflows/kvplan.yml"),
        ("gitlab-ci", "examples/ci/.gitlab-ci.yml"),
    ],
)
def test_what_a_host_reads_is_what_it_expects(kind: str, file: str, tmp_path: Path) -> None:
    """The schemas of the hosts, as check-jsonschema brings them along."""
    done = subprocess.run(
        [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{kind}", file],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_the_image_is_built_from_what_the_wheel_needs() -> None:
    """Every file that pyproject.toml names for the wheel passes .dockerignore."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    needed = {*wheel["packages"], *wheel["force-include"], project["project"]["readme"]}
    needed |= {*project["project"]["license-files"], "pyproject.toml"}
    kept = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    assert {f"!{name}" for name in needed} <= set(kept)
    docker = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    assert "\nUSER kvplan\n" in docker
    assert docker.rstrip().endswith('ENTRYPOINT ["kvplan"]')
