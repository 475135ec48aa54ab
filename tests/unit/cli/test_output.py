"""Reports reach their file whole or not at all."""

from __future__ import annotations

import os
import stat
import sys
from io import StringIO
from pathlib import Path

import pytest

from kvplan.cli import output
from kvplan.cli.output import write
from kvplan.errors import UsageError


def test_a_file_is_written_in_utf8(tmp_path: Path) -> None:
    write("4 × H100\n", tmp_path / "plan.txt")
    assert (tmp_path / "plan.txt").read_bytes() == "4 × H100\n".encode()
    assert [path.name for path in tmp_path.iterdir()] == ["plan.txt"]


def test_a_new_file_has_the_mode_that_the_umask_says(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write("x", tmp_path / "plan.txt")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "plan.txt").stat().st_mode) == 0o640


def test_a_file_that_is_replaced_keeps_its_mode_and_its_link(tmp_path: Path) -> None:
    real = tmp_path / "real.txt"
    real.write_text("old")
    real.chmod(0o604)
    (tmp_path / "link.txt").symlink_to(real)
    write("new", tmp_path / "link.txt")
    assert real.read_text() == "new"
    assert (tmp_path / "link.txt").is_symlink()
    assert stat.S_IMODE(real.stat().st_mode) == 0o604


def test_a_failure_half_way_leaves_the_old_file_and_no_rubbish(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "plan.txt"
    target.write_text("old")

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(output, "_mode", full)
    with pytest.raises(UsageError, match="No space left on device"):
        write("new", target)
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["plan.txt"]


@pytest.mark.parametrize("name", ["missing/plan.txt", ""])
def test_a_place_that_can_not_be_written_is_a_usage_error(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError) as caught:
        write("x", tmp_path / name)
    assert caught.value.exit_code == 2
    assert str(tmp_path) in str(caught.value)


def test_a_device_is_written_to_and_not_replaced() -> None:
    write("x", Path(os.devnull))
    assert not Path(os.devnull).is_file()


def test_a_dash_and_nothing_mean_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    write("one ", None)
    write("two", Path("-"))
    assert capsys.readouterr().out == "one two"


def test_a_closed_stdout_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    write("x", None)


def test_a_stdout_that_lacks_a_character_gets_a_substitute(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Latin(StringIO):
        encoding = "ascii"

    stream = Latin()
    monkeypatch.setattr(sys, "stdout", stream)
    write("é", None)
    assert stream.getvalue() == "?"
