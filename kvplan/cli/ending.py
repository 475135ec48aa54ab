"""How a run ends: every outcome → one exit code, and at most two lines on stderr.

0 yes · 1 no · 2 usage or unreadable input · 3 facts unobtainable · 4 refused · 70 a bug ·
130 interrupted. A closed pipe is no error: 0, in silence.
"""

from __future__ import annotations

import contextlib
import errno
import re
import sys
from collections.abc import Callable

import typer

from kvplan.cli.invocation import Invocation
from kvplan.errors import KvplanError

_USAGE, _BUG, _INTERRUPTED = 2, 70, 130
# What the file system answers when no more can be written, whoever wrote.
_UNWRITABLE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG})
# A word that somebody typed or a file holds is echoed in part; a line of an error has an end too.
_LONGEST_WORD, _LONGEST_LINE, _MOST_LINES = 120, 600, 30
_LONG_WORD = re.compile(rf"\S{{{_LONGEST_WORD + 1},}}")
_LONG_QUOTE = re.compile(rf"'[^']{{{_LONGEST_WORD + 1},}}'")


def exit_code(command: Callable[[], int], invocation: Invocation) -> int:
    """Runs ``command`` and turns whatever it raises into an exit code."""
    try:
        code = command()
        _flush()
    except BrokenPipeError:
        _silence()
        code = 0
    except (KeyboardInterrupt, typer.Abort):
        code = _INTERRUPTED
    except SystemExit as end:
        code = _of_system_exit(end)
    except KvplanError as error:
        code = _of_kvplan(error, invocation)
    except typer.TyperException as error:
        code = _of_usage(error, invocation)
    except Exception as error:  # noqa: BLE001 - the last resort: whatever is left is a bug
        unwritable = isinstance(error, OSError) and error.errno in _UNWRITABLE
        code = _of_stdout(error, invocation) if unwritable else _of_bug(error, invocation)
    return code


def _of_system_exit(end: SystemExit) -> int:
    # typer turns a closed pipe into SystemExit(1), which would read as "does not fit".
    if isinstance(end.__context__, BrokenPipeError):
        _silence()
        return 0
    if end.code is None:
        return 0
    return end.code if isinstance(end.code, int) else _BUG


def _of_kvplan(error: KvplanError, invocation: Invocation) -> int:
    hint = error.hint
    if error.exit_code == _BUG:
        hint = " ".join(filter(None, (hint, _PLEASE_REPORT)))
    _explain(str(error), hint, invocation)
    return error.exit_code


def _of_usage(error: typer.TyperException, invocation: Invocation) -> int:
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "kvplan"
    message = error.format_message().replace(": Value error, ", ": ")
    _explain(message, f"`{command} --help` shows what there is.", invocation)
    return error.exit_code


def _of_stdout(error: Exception, invocation: Invocation) -> int:
    # What is still buffered would be tried again, and complained of, when Python ends.
    _silence()
    reason = getattr(error, "strerror", None) or str(error)
    hint = "Name a file in a folder that exists and may be written to."
    _explain(f"stdout: The text can't be written: {reason}.", hint, invocation)
    return _USAGE


def _of_bug(error: Exception, invocation: Invocation) -> int:
    detail = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    _explain(f"this is a bug in kvplan ({detail[:300]})", _PLEASE_REPORT, invocation)
    return _BUG


_PLEASE_REPORT = "Run it again with --debug and report what it prints."


def _explain(message: str, hint: str | None, invocation: Invocation) -> None:
    """The error on stderr, as one sentence and a hint; with --debug the traceback before it.

    A file with several problems is one error with a line for each.
    """
    first, *more = message.split("\n")
    lines = [f"error: {_cut(first)}", *(f"  {_cut(line.strip())}" for line in more[:_MOST_LINES])]
    if hint:
        lines.append(f"hint: {_cut(hint)}")
    with contextlib.suppress(OSError, ValueError):
        if sys.stderr is None:
            return
        if invocation.debug:
            import traceback

            traceback.print_exc()
        sys.stderr.write("\n".join(lines) + "\n")
        sys.stderr.flush()


def _cut(line: str) -> str:
    """A line safe for a terminal, in which nothing quoted or typed goes on and on."""
    from kvplan.reports.clean import clean

    text = _LONG_WORD.sub(_middle_out, clean(_LONG_QUOTE.sub(_middle_out, line)))
    return text if len(text) <= _LONGEST_LINE else text[: _LONGEST_LINE - 1] + "…"


def _middle_out(match: re.Match[str]) -> str:
    """The start and the end: the end of a path says more than its middle."""
    return f"{match[0][: _LONGEST_WORD // 2]}…{match[0][-_LONGEST_WORD // 2 + 1 :]}"


def _silence() -> None:
    from kvplan.cli.output import silence_stdout

    silence_stdout()


def _flush() -> None:
    if sys.stdout is not None:
        sys.stdout.flush()
