"""Files of another revision, read without touching the working tree."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from kvplan.errors import InputError, UsageError
from kvplan.sources.git import Revision


def _git(folder: Path, *words: str) -> None:
    names = {
        f"GIT_{role}_{what}": value
        for role in ("AUTHOR", "COMMITTER")
        for what, value in (("NAME", "T"), ("EMAIL", "t@example.com"))
    }
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), **names}
    subprocess.run(["git", *words], cwd=folder, env=environment, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    _git(tmp_path, "init", "-q", "-b", "main")
    (tmp_path / "a.yaml").write_bytes(b"old\r\n")
    _git(tmp_path, "add", ".")
    _git(tmp_path, "commit", "-q", "-m", "first")
    (tmp_path / "a.yaml").write_bytes(b"new")
    (tmp_path / "b.yaml").write_bytes(b"untracked")
    return tmp_path


def test_a_file_is_read_as_it_was(repository: Path) -> None:
    revision = Revision("main", repository)
    assert revision.read(repository / "a.yaml") == b"old\r\n"
    assert (repository / "a.yaml").read_bytes() == b"new"


def test_what_the_revision_does_not_have(repository: Path) -> None:
    revision = Revision("HEAD", repository)
    assert not revision.has(repository / "b.yaml")
    assert revision.read_any(repository / "b.yaml") == b""
    with pytest.raises(UsageError, match="HEAD has no file"):
        revision.read(repository / "b.yaml")


def test_a_path_outside_is_refused(repository: Path) -> None:
    with pytest.raises(UsageError, match="is not in the repository"):
        Revision("main", repository).read(repository.parent / "x.yaml")


def test_a_large_file_is_no_scenario(repository: Path) -> None:
    (repository / "c.yaml").write_bytes(b"#" * (2**20 + 1))
    _git(repository, "add", ".")
    _git(repository, "commit", "-q", "-m", "second")
    with pytest.raises(InputError, match="kvplan reads at most"):
        Revision("main", repository).read(repository / "c.yaml")


@pytest.mark.parametrize("name", ["no-such", "--help", "-n", "main\nHEAD", ""])
def test_a_name_that_is_no_revision(repository: Path, name: str) -> None:
    with pytest.raises(UsageError, match="git knows no revision"):
        Revision(name, repository)


def test_without_git(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(repository))
    with pytest.raises(InputError, match="git can't be run"):
        Revision("main", repository)
