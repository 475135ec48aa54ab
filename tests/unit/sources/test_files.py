"""Paths that can't be read: each is one sentence with a hint."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kvplan.errors import InputError, UsageError
from kvplan.sources import files
from kvplan.sources.models import read_model


@pytest.mark.parametrize("ending", ["", ".json", ".yaml", ".gguf"])
@pytest.mark.parametrize("start", ["./" + "a" * 300, "./" + "abc/" * 2000 + "x"])
def test_a_name_too_long_for_a_path(start: str, ending: str) -> None:
    with pytest.raises(UsageError, match="too long to be a path") as caught:
        read_model(start + ending)
    assert len(caught.value.message) < 120
    assert caught.value.hint


def test_a_long_path_is_shown_in_part() -> None:
    with pytest.raises(UsageError, match="no file or folder") as caught:
        read_model("./" + "abc/" * 500)
    assert len(caught.value.message) < 160


def test_a_pipe_or_a_folder_where_a_file_was_expected(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(InputError, match="where a file was expected") as caught:
            files.read_whole(path, limit=10)
        assert caught.value.hint
