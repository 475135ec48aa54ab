"""Reports leave here: to stdout, or to a file that is written whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from kvplan.errors import UsageError


def write(text: str, path: Path | None) -> None:
    """Writes a report to ``path``, or to stdout for None and ``-``.

    Raises:
        UsageError: the file can't be written, or the disk is full.
        BrokenPipeError: nobody reads stdout any more.
    """
    if path is None or str(path) == "-":
        _to_stdout(text)
        return
    write_bytes(text.encode(), path)


def write_bytes(data: bytes, path: Path) -> None:
    """Writes a file whole or not at all.

    Raises:
        UsageError: it can't be written, or the disk is full.
    """
    _to_file((data,), path)


def write_stream(texts: Iterable[str], path: Path | None) -> None:
    """Writes a long report a piece at a time, as `write` does.

    Raises:
        UsageError, BrokenPipeError: see `write`.
    """
    if path is None or str(path) == "-":
        for text in texts:
            _to_stdout(text)
    else:
        _to_file((text.encode() for text in texts), path)


def _to_file(parts: Iterable[bytes], path: Path) -> None:
    try:
        if path.exists() and not path.is_file():
            _to_special(parts, path)
        else:
            _replace(parts, path)
    except OSError as error:
        raise _unwritable(str(path), error) from error


def target_of(path: Path) -> Path:
    """The file that is written for ``path``: what a link leads to.

    Raises:
        UsageError: links that lead back to themselves.
    """
    try:
        return path.resolve()
    except RuntimeError:  # Python before 3.13 resolves no such loop
        loop = OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        raise _unwritable(str(path), loop) from None


def _to_stdout(text: str) -> None:
    if sys.stdout is None:  # closed by the caller: only the exit code is wanted
        return
    encoding = sys.stdout.encoding or "utf-8"
    try:
        sys.stdout.write(text.encode(encoding, "replace").decode(encoding))
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise _unwritable("stdout", error) from error


def silence_stdout() -> None:
    """Sends what is still buffered to nowhere, so that Python's own exit says nothing either."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _to_special(parts: Iterable[bytes], path: Path) -> None:
    """A device or a named pipe: there is nothing to replace."""
    with path.open("wb") as stream:
        stream.writelines(parts)


def _replace(parts: Iterable[bytes], path: Path) -> None:
    target = target_of(path)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:100]}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.writelines(parts)
        Path(name).chmod(_mode(target))
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _mode(target: Path) -> int:
    """The mode of the file that is replaced, or what a new file gets."""
    if target.exists():
        return target.stat().st_mode & 0o777
    umask = os.umask(0)
    os.umask(umask)
    return 0o666 & ~umask


def _unwritable(where: str, error: OSError) -> UsageError:
    reason = error.strerror or str(error)
    return UsageError(
        f"The report can't be written: {reason}.",
        hint="Name a file in a folder that exists and may be written to.",
        location=where,
    )
