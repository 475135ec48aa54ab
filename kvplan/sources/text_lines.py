"""Lines of text from a file, a pipe or standard input, plain or gzipped, however many there are.

Nothing here holds more than a block and a line in memory.
"""

from __future__ import annotations

import gzip
import io
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from kvplan.errors import InputError, KvplanError, UsageError
from kvplan.sources.files import explain

STDIN_NAMES = frozenset({"-", "/dev/stdin"})
_GZIP_MAGIC = b"\x1f\x8b"


def name_of(path: str) -> str:
    """What a file is called in messages and in a record's source."""
    return "standard input" if path in STDIN_NAMES else path


@contextmanager
def opened(path: str) -> Iterator[BinaryIO]:
    """Opens a file for reading its text, unpacking gzip; ``-`` is standard input.

    Raises:
        UsageError: no such file, or standard input is closed.
        InputError: a folder, not readable, or broken gzip (also while it is read).
    """
    with _raw(path) as raw:
        stream = cast("BinaryIO", gzip.GzipFile(fileobj=raw)) if _is_gzip(raw) else raw
        try:
            yield stream
        except (OSError, EOFError, zlib.error) as error:
            raise _unreadable(error, path) from None


@contextmanager
def _raw(path: str) -> Iterator[io.BufferedReader]:
    if path in STDIN_NAMES:
        if sys.stdin is None:
            raise UsageError("Standard input is closed.", hint="Name a file in place of -.")
        yield cast("io.BufferedReader", sys.stdin.buffer)
        return
    try:
        file = Path(path).open("rb")  # noqa: SIM115  closed below, where the caller is done
    except (OSError, ValueError) as error:
        raise explain(error, Path(path)) from None
    with file:
        yield file


def _is_gzip(stream: io.BufferedReader) -> bool:
    return stream.peek(len(_GZIP_MAGIC))[: len(_GZIP_MAGIC)] == _GZIP_MAGIC


def _unreadable(error: OSError | EOFError | zlib.error, path: str) -> KvplanError:
    # gzip.BadGzipFile is an OSError without an errno.
    if isinstance(error, OSError) and error.errno is not None:
        return explain(error, Path(name_of(path)))
    return InputError(
        "The gzip data is cut off or damaged.",
        hint="Unpack the file as far as it goes: gzip -dc FILE | kvplan … -.",
        location=name_of(path),
    )


def numbered_lines(stream: BinaryIO, *, longest: int, location: str) -> Iterator[tuple[int, bytes]]:
    """Each line without its end, with its number from 1.

    Raises:
        InputError: a line of more than ``longest`` bytes.
    """
    number = 0
    while line := stream.readline(longest + 2):
        number += 1
        line = line.rstrip(b"\r\n")
        if len(line) > longest:
            raise InputError(
                f"The line has more than {longest:,} bytes.",
                hint="Check that this is the file you meant: one record a line.",
                location=f"{location}:{number}",
            )
        yield number, line
