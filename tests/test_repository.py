"""What holds for the files of the repository as such."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import kvplan

ROOT = Path(__file__).parents[1]
_BUILT = {"dist", "build", "__pycache__"}
_TEXT = {
    ".py",
    ".md",
    ".toml",
    ".yaml",
    ".yml",
    ".json",
    ".jsonl",
    ".csv",
    ".txt",
    ".cfg",
    ".c",
    "",
}
_THIS = "tests/test_repository.py"


def _files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        hidden = path.name.startswith(".") and path.name not in (".ci", ".gitignore")
        if hidden or path.name in _BUILT or path.name.endswith(".egg-info"):
            continue
        if path.is_dir():
            yield from _files(path)
        elif path.suffix in _TEXT:
            yield path


FILES = {path.relative_to(ROOT).as_posix(): path for path in _files(ROOT)}
PRODUCT = {name: path for name, path in FILES.items() if not name.startswith("tests/")}
OURS = {name: path for name, path in PRODUCT.items() if not name.endswith((".json", ".jsonl"))}
SPECS = [name for name in FILES if re.match(r"(model|gpu)_specs/.*\.ya?ml$", name)]


def mentions(files: dict[str, Path], pattern: str) -> list[str]:
    """Every ``file:line: text`` in ``files`` that matches ``pattern``."""
    wanted = re.compile(pattern)
    return [
        f"{name}:{number}: {line.strip()[:100]}"
        for name, path in files.items()
        if name != _THIS
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if wanted.search(line)
    ]


MACHINE = r"(?<![\w.])/(work|root|home/\w+)/"
TEMPORARY = r"(?<![\w.])/tmp\b"
REFERENCE_DATA = r"\bshared/(configs|docs|gpus|measurements|oracle|traces|hooks)\b|\.\./shared\b"
# "owner/name#12" and ".../issues/12" say whose; a bare number would be read as this project's.
BARE_ISSUE = r"(?i)(?<![/\w-])(issue|ticket)s?\s+#?\d+|(?<![\w/&#-])#\d{1,6}\b"
INDEX = r"(?i)\bpypi\.org|pythonhosted\.org|--(extra-)?index-url|\bPIP_INDEX_URL"
# The name without the ending belongs to somebody else.
OTHER_PROJECT = (
    r"\b(pip|pipx|uv|tool) (install|add|run)( -\S+)* ['\"]?kvplan(?!-sizer)|uvx kvplan(?!-)"
)
REMOTE_CODE = r"trust_remote_code['\"]?\s*[=:]"


@pytest.mark.parametrize(
    ("pattern", "caught", "passed"),
    [
        (MACHINE, "see /work/main", "network/work/x"),
        (MACHINE, "/home/me/kvplan", "https://example.org/home/page"),
        (TEMPORARY, "in /tmp.", "src/tmp"),
        (REFERENCE_DATA, "../shared", "shared experts"),
        (REFERENCE_DATA, "shared/configs", "shared/attention"),
        (BARE_ISSUE, "fixes #12", "vllm-project/vllm#12"),
        (BARE_ISSUE, "see issue 12", "vllm-project/vllm/issues/12"),
        (INDEX, "https://PyPI.org/simple", "the package index"),
        (INDEX, "--index-url x", "--index x"),
        (OTHER_PROJECT, "pip install -q kvplan", "pip install kvplan-sizer"),
        (OTHER_PROJECT, "uvx kvplan", "uvx --from kvplan-sizer kvplan"),
        (REMOTE_CODE, "trust_remote_code=False", "never trust_remote_code"),
        (REMOTE_CODE, '"trust_remote_code": true', "trust_remote_code is not read"),
    ],
)
def test_the_patterns_catch_what_they_are_for(pattern: str, caught: str, passed: str) -> None:
    assert re.search(pattern, caught)
    assert not re.search(pattern, passed)


def test_the_files_are_found() -> None:
    assert {"kvplan/errors.py", ".ci/run", "pyproject.toml", "README.md"} <= set(PRODUCT)
    assert SPECS


def test_no_file_names_a_machines_own_folders() -> None:
    assert mentions(FILES, MACHINE) == []
    assert mentions(PRODUCT, TEMPORARY) == []


def test_only_the_tests_know_where_the_reference_data_lies() -> None:
    others = {name: path for name, path in FILES.items() if name != "tests/conftest.py"}
    assert mentions(others, REFERENCE_DATA) == []


def test_nothing_refers_to_a_tracker_but_by_its_address() -> None:
    assert mentions(OURS, BARE_ISSUE) == []


def test_nothing_prescribes_where_packages_come_from() -> None:
    assert mentions(PRODUCT, INDEX) == []


def test_the_distribution_is_installed_by_its_own_name() -> None:
    assert mentions(FILES, OTHER_PROJECT) == []


def test_code_from_model_repositories_is_never_switched_on() -> None:
    assert mentions(FILES, REMOTE_CODE) == []


@pytest.mark.parametrize("name", SPECS)
def test_a_spec_is_short_enough_to_review(name: str) -> None:
    assert len(FILES[name].read_text(encoding="utf-8").splitlines()) <= 200


# One literal table, a row a family, is as long as what it lists.
TABLES = {"kvplan/architectures/table.py"}


def test_modules_are_short() -> None:
    lengths = {
        name: len(path.read_text(encoding="utf-8").splitlines())
        for name, path in FILES.items()
        if name.startswith("kvplan/") and name.endswith(".py") and name not in TABLES
    }
    assert {name: length for name, length in lengths.items() if length > 400} == {}


def test_every_rule_that_is_switched_off_says_why() -> None:
    text = FILES["pyproject.toml"].read_text(encoding="utf-8")
    ruff = text[text.index("[tool.ruff.lint]") :]
    off = [line for line in ruff.splitlines() if re.search(r"\"[A-Z]{1,4}\d{3,4}\"", line)]
    assert len(off) > 10
    assert [line for line in off if "#" not in line] == []


def test_the_version_is_stated_once() -> None:
    stated = re.escape(kvplan.__version__)
    code = {name: path for name, path in PRODUCT.items() if name.endswith((".py", ".toml"))}
    assert [hit.split(":")[0] for hit in mentions(code, rf"['\"]{stated}['\"]")] == [
        "kvplan/_version.py"
    ]
    project = tomllib.loads(FILES["pyproject.toml"].read_text(encoding="utf-8"))["project"]
    assert "version" not in project


def test_the_changelog_has_a_place_for_what_is_new() -> None:
    changelog = FILES["CHANGELOG.md"].read_text(encoding="utf-8")
    current = re.escape(kvplan.__version__)
    assert re.search(rf"^## \[(Unreleased|{current})\]", changelog, re.MULTILINE)


def test_the_distribution_is_typed_and_licensed() -> None:
    assert (ROOT / "kvplan" / "py.typed").is_file()
    licence = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert "Apache License" in licence
