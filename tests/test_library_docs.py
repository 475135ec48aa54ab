"""docs/library.md: its examples run, and every public name is in it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import kvplan

PAGE = Path(__file__).parents[1] / "docs" / "library.md"


def blocks(text: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def test_the_examples_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In order and in one namespace, as a reader would type them."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    text = PAGE.read_text(encoding="utf-8")
    for block in blocks(text):
        line = text[: text.index(block)].count("\n")
        exec(compile("\n" * line + block, str(PAGE), "exec"), names)  # noqa: S102
    assert (tmp_path / "plan.csv").is_file()
    assert (tmp_path / "same.json").is_file()
    assert "at once, at a risk of" in capsys.readouterr().out


def test_every_public_name_is_explained() -> None:
    text = PAGE.read_text(encoding="utf-8")
    missing = [n for n in kvplan.__all__ if f"`{n}`" not in text and n != "__version__"]
    assert missing == []


@pytest.mark.parametrize("name", [name for name in kvplan.__all__ if name != "__version__"])
def test_every_public_name_is_documented(name: str) -> None:
    """What it takes or holds, and what it looks like in use; functions say what they raise."""
    thing = getattr(kvplan, name)
    text = thing.__doc__ or ""
    assert "Example:" in text
    assert "Attributes:" in text or "Args:" in text
    if callable(thing) and not isinstance(thing, type):
        assert "Raises:" in text
        code = thing.__code__
        for argument in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]:
            assert f"        {argument}: " in text, argument
