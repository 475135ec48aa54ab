"""How a run ends: every outcome → one exit code, and at most two lines on stderr.

0 yes · 1 no · 2 usage or unreadable input · 3 facts unobtainable · 4 refused · 70 a bug ·
130 interrupted. A closed pipe is no error: 0, in silence.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable

import typer

from kvplan.cli.session import Session
from kvplan.errors import KvplanError

_BUG, _INTERRUPTED = 70, 130


def exit_code(command: Callable[[], int], session: Session) -> int:
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
        code = _of_kvplan(error, session)
    except typer.TyperException as error:
        code = _of_usage(error, session)
    except Exception as error:  # noqa: BLE001 - the last resort: whatever is left is a bug
        code = _of_bug(error, session)
    return code


def _of_system_exit(end: SystemExit) -> int:
    # typer turns a closed pipe into SystemExit(1), which would read as "does not fit".
    if isinstance(end.__context__, BrokenPipeError):
        _silence()
        return 0
    if end.code is None:
        return 0
    return end.code if isinstance(end.code, int) else _BUG


def _of_kvplan(error: KvplanError, session: Session) -> int:
    hint = error.hint
    if error.exit_code == _BUG:
        hint = " ".join(filter(None, (hint, _PLEASE_REPORT)))
    _explain(str(error), hint, session)
    return error.exit_code


def _of_usage(error: typer.TyperException, session: Session) -> int:
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "kvplan"
    _explain(error.format_message(), f"`{command} --help` shows what there is.", session)
    return error.exit_code


def _of_bug(error: Exception, session: Session) -> int:
    detail = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    _explain(f"this is a bug in kvplan ({detail[:300]})", _PLEASE_REPORT, session)
    return _BUG


_PLEASE_REPORT = "Run it again with --debug and report what it prints."


def _explain(message: str, hint: str | None, session: Session) -> None:
    """The error on stderr, as one sentence and a hint; with --debug the traceback before it.

    A file with several problems is one error with a line for each.
    """
    from kvplan.reports.clean import clean

    first, *more = message.split("\n")
    lines = [f"error: {clean(first)}", *(f"  {clean(line.strip())}" for line in more)]
    if hint:
        lines.append(f"hint: {clean(hint)}")
    with contextlib.suppress(OSError, ValueError):
        if sys.stderr is None:
            return
        if session.debug:
            import traceback

            traceback.print_exc()
        sys.stderr.write("\n".join(lines) + "\n")
        sys.stderr.flush()


def _silence() -> None:
    from kvplan.cli.output import silence_stdout

    silence_stdout()


def _flush() -> None:
    if sys.stdout is not None:
        sys.stdout.flush()
