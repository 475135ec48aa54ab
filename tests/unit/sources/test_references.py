"""Names of models as people type them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvplan.errors import UsageError
from kvplan.sources.references import as_path, is_model_id, split_reference


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("org/name", ("org/name", None)),
        ("gpt2", ("gpt2", None)),
        ("org/name@main", ("org/name", "main")),
        ("org/name@refs/pr/1", ("org/name", "refs/pr/1")),
        ("Org-1/Na_me.v2@" + "0" * 40, ("Org-1/Na_me.v2", "0" * 40)),
    ],
)
def test_split(reference: str, expected: tuple[str, str | None]) -> None:
    assert split_reference(reference) == expected


@pytest.mark.parametrize(
    "reference",
    [
        "", "a b", "a/b/c", "../b", "a/..", "a--b/c", "a/b.git", "-a/b", "a/b-", ".a/b", "a/", "/a",
        "x" * 97, "ä/b", "a/b\n", "org/name@", "org/name@a b", "org/name@../x", "org/name@-x",
        "org/name@a@b", "org/name@" + "x" * 201, "a\0b", "org/name?x=1", "org/name#x", "%2e%2e/b",
    ],
)  # fmt: skip
def test_refused(reference: str) -> None:
    with pytest.raises(UsageError) as caught:
        split_reference(reference)
    assert caught.value.hint
    assert len(caught.value.message) < 200


@given(st.text())
def test_any_text(text: str) -> None:
    """A name, or one kind of error; what is accepted is safe to put in an address."""
    try:
        name, revision = split_reference(text)
    except UsageError:
        return
    assert is_model_id(name)
    assert ".." not in f"{name}{revision}"
    assert f"{name}{revision}".isascii()


@pytest.mark.parametrize(
    ("reference", "path"),
    [
        ("./model", "model"),
        ("../model", "../model"),
        ("/models/x", "/models/x"),
        ("models/", "models"),
        (".", "."),
        ("a/b/c", "a/b/c"),
        ("x.json", "x.json"),
        ("org/x.gguf", "org/x.gguf"),
        ("spec.yaml", "spec.yaml"),
        ("~nobody-of-that-name/x", "~nobody-of-that-name/x"),
        ("a\\b", "a\\b"),
    ],
)
def test_written_like_a_path(reference: str, path: str) -> None:
    assert as_path(reference) == Path(path)


def test_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert as_path("~/model") == tmp_path / "model"


@pytest.mark.parametrize(
    "reference", ["org/name", "gpt2", "org/name@refs/pr/1", "", "a\0b", "x" * 300, "x" * 9000]
)
def test_a_name(reference: str) -> None:
    assert as_path(reference) is None


def test_a_folder_of_that_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A folder here wins over the Hub's name if it holds a model."""
    monkeypatch.chdir(tmp_path)
    Path("org/name").mkdir(parents=True)
    assert as_path("org/name") is None
    Path("org/name/config.json").touch()
    assert as_path("org/name") == Path("org/name")
    Path("my model").mkdir()
    Path("my model/config.json").touch()
    assert as_path("my model") == Path("my model")


def test_an_address() -> None:
    with pytest.raises(UsageError, match="is an address"):
        as_path("https://huggingface.co/org/name")
