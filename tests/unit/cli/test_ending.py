"""Every outcome has the contract's exit code, and errors are at most two lines."""

from __future__ import annotations

import errno
import sys

import pytest
import typer

from kvplan import errors
from kvplan.cli.ending import exit_code
from kvplan.cli.invocation import Invocation


def _end(error: BaseException | None, *, debug: bool = False) -> int:
    def command() -> int:
        if error is not None:
            raise error
        return 0

    return exit_code(command, Invocation(debug=debug))


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (None, 0),
        (errors.UsageError("no"), 2),
        (errors.UnknownNameError("no"), 2),
        (errors.InputError("no"), 2),
        (errors.HubUnreachableError("no"), 3),
        (errors.NoDeviceError("no"), 3),
        (errors.NotModelledError("no"), 4),
        (errors.EngineRefusesError("no"), 4),
        (errors.InternalError("no"), 70),
        (typer.BadParameter("no"), 2),
        (ValueError("no"), 70),
        (RecursionError("no"), 70),
        (MemoryError(), 70),
        (KeyboardInterrupt(), 130),
        (typer.Abort(), 130),
        (SystemExit(0), 0),
        (SystemExit(), 0),
        (SystemExit(3), 3),
    ],
)
def test_exit_codes(error: BaseException | None, code: int) -> None:
    assert _end(error) == code


def test_an_error_is_a_sentence_with_its_place_and_a_hint(
    capsys: pytest.CaptureFixture[str],
) -> None:
    _end(errors.InputError("Bad\x1b[31m key.", hint="Fix it.", location="a.yaml:3"))
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "error: a.yaml:3: Bad\\x1b[31m key.\nhint: Fix it.\n"


def test_an_error_without_a_hint_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    _end(errors.InputError("Bad key."))
    assert capsys.readouterr().err == "error: Bad key.\n"


@pytest.mark.parametrize("error", [KeyError("x"), errors.InternalError("A formula is broken.")])
def test_a_bug_says_so_without_a_traceback(
    error: Exception, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _end(error) == 70
    written = capsys.readouterr().err
    assert "Traceback" not in written
    assert "--debug" in written
    assert len(written.splitlines()) == 2


@pytest.mark.parametrize("error", [KeyError("x"), errors.UsageError("no")])
def test_debug_shows_the_traceback(error: Exception, capsys: pytest.CaptureFixture[str]) -> None:
    _end(error, debug=True)
    written = capsys.readouterr().err
    assert "Traceback" in written
    assert written.rstrip().splitlines()[-1].startswith(("error: ", "hint: "))


def test_typers_own_exit_after_a_closed_pipe_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)

    def command() -> int:
        try:
            raise BrokenPipeError
        except OSError:
            sys.exit(1)

    assert exit_code(command, Invocation()) == 0


def test_a_closed_stderr_changes_no_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    assert _end(errors.UsageError("no")) == 2


@pytest.mark.parametrize("text", ["b" * 10**5, "a word " * 10**4, "/folder" * 600, "é" * 10**5])
def test_what_was_typed_is_echoed_in_part(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    for error in (
        errors.UsageError(f"No such thing as {text!r}.", hint=f"Not {text}.", location=text),
        typer.BadParameter(f"{text!r} is wrong"),
    ):
        _end(error)
        assert all(len(line) <= 620 for line in capsys.readouterr().err.splitlines())
    _end(errors.UsageError("Wrong.", location="/folder" * 600 + "/end.yaml:3:1"))
    printed = capsys.readouterr().err
    assert printed.endswith("/end.yaml:3:1: Wrong.\n")
    assert len(printed) < 150


def test_a_full_disk_is_no_bug(capsys: pytest.CaptureFixture[str]) -> None:
    assert _end(OSError(errno.ENOSPC, "No space left on device")) == 2
    assert "No space left on device" in capsys.readouterr().err
    assert _end(OSError(errno.EBADMSG, "something else")) == 70
