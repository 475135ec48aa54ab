"""Width, colour and encoding follow the conventions of terminals."""

from __future__ import annotations

import sys

import pytest

from kvplan.cli.terminal import NARROWEST_PLAN, paper, terminal


class _Stream:
    def __init__(self, *, tty: bool, encoding: str | None) -> None:
        self.encoding = encoding
        self._tty = tty

    def isatty(self) -> bool:
        return self._tty


def _stdout(
    monkeypatch: pytest.MonkeyPatch, *, tty: bool = False, encoding: str | None = "utf-8"
) -> None:
    monkeypatch.setattr(sys, "stdout", _Stream(tty=tty, encoding=encoding))
    monkeypatch.setattr(sys, "__stdout__", None)


@pytest.mark.parametrize(
    ("columns", "width"), [(None, 120), ("100", 100), ("40", 80), ("300", 140), ("junk", 120)]
)
def test_width(monkeypatch: pytest.MonkeyPatch, columns: str | None, width: int) -> None:
    _stdout(monkeypatch)
    if columns is not None:
        monkeypatch.setenv("COLUMNS", columns)
    assert terminal().width == width


@pytest.mark.parametrize(("columns", "width"), [("70", 70), ("40", 60), ("100", 100)])
def test_a_plan_is_laid_out_for_narrow_terminals(
    monkeypatch: pytest.MonkeyPatch, columns: str, width: int
) -> None:
    _stdout(monkeypatch)
    monkeypatch.setenv("COLUMNS", columns)
    assert terminal(NARROWEST_PLAN).width == width


@pytest.mark.parametrize(
    ("variables", "tty", "color"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"NO_COLOR": "1"}, True, False),
        ({"NO_COLOR": ""}, True, True),
        ({"FORCE_COLOR": "1"}, False, True),
        ({"FORCE_COLOR": "0"}, True, False),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, True, False),
        ({"TERM": "dumb"}, True, False),
    ],
)
def test_colour(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], *, tty: bool, color: bool
) -> None:
    _stdout(monkeypatch, tty=tty)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert terminal().color is color


@pytest.mark.parametrize(
    ("encoding", "ascii_only"),
    [("utf-8", False), ("UTF8", False), ("ascii", True), ("latin-1", True), ("nonsense", True)],
)
def test_encoding(
    monkeypatch: pytest.MonkeyPatch, encoding: str | None, *, ascii_only: bool
) -> None:
    _stdout(monkeypatch, encoding=encoding)
    assert terminal().ascii_only is ascii_only


def test_a_closed_stdout_has_no_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    assert terminal().color is False


def test_files_look_the_same_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert (paper().width, paper().color, paper().ascii_only) == (120, False, False)
