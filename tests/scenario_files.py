"""Scenario files for tests: written to a folder, loaded, asked."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path

from kvplan.check_result import CheckResult, ScenarioResult
from kvplan.checking.check import check
from kvplan.checking.settings import Settings
from kvplan.scenario.layers import layered, pools
from kvplan.scenario.load import LoadedFile, Sources, load
from kvplan.scenario.matrix import expand
from kvplan.scenario.overrides import parse_overrides
from kvplan.scenario.question import Question, question
from kvplan.sources.scenario_file import read_scenario_file

HEAD = "schema: kvplan.scenario/1\n"
LLAMA = "meta-llama/Llama-3.1-8B-Instruct"
OFFLINE = Settings(offline=True)


def write(folder: Path, text: str, name: str = "kvplan.yaml") -> Path:
    """A scenario file; its first line is put in front."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(HEAD + textwrap.dedent(text), encoding="utf-8")
    return path


def loaded(path: Path, variables: Mapping[str, str] | None = None) -> LoadedFile:
    """The file, with an environment of its own."""
    return load(path, Sources(read_scenario_file, variables or {}))


def questions(
    path: Path, *, sets: Sequence[str] = (), variables: Mapping[str, str] | None = None
) -> list[Question]:
    """All that a file asks."""
    file = loaded(path, variables)
    overrides = parse_overrides(sets)
    return [
        question(variant, pools(file), overrides)
        for each in layered(file)
        for variant in expand(each)
    ]


def one(body: str) -> str:
    """The text of a file with one scenario, `a`, of a small model on one card."""
    lines = textwrap.indent(textwrap.dedent(body).strip(), "    ")
    base = f"    model: {LLAMA}\n    gpu: H100-SXM-80GB\n    engine: vllm==0.33.0\n"
    kept = "".join(
        f"{line}\n"
        for line in base.splitlines()
        if f"{line.split(':')[0].strip()}:" not in {row.split(" ")[0] for row in body.split("\n")}
    )
    return f"scenarios:\n  a:\n{kept}{lines}\n"


def checked(folder: Path, body: str, settings: Settings = OFFLINE) -> ScenarioResult:
    """The result of one scenario; ``body`` are its keys beside model, GPU and engine."""
    (result,) = results(write(folder, one(textwrap.dedent(body))), settings).scenarios
    return result


def results(path: Path, settings: Settings = OFFLINE) -> CheckResult:
    """The results of a file."""
    return check([path], settings)


def codes(result: ScenarioResult) -> list[str]:
    """The codes of what was found and is not ignored."""
    return [each.code for each in result.findings if each.ignored is None]
