"""Cursor: a place in a GGUF file's header, read through a window of fixed size."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

from kvplan.errors import InputError
from kvplan.sources import files

HEADER_LIMIT = 64 * 2**20  # bytes that are walked through; the largest vocabularies take some 16
_WINDOW = 2**20
_BATCH = 64  # strings stepped over at once
_SHORT = 64  # bytes of a string that is stepped over in a batch: nearly all tokens are shorter


class Cursor:
    """Reads forward; every claim of the file is checked against what is there.

    Args:
        file: Opened for reading, at its start.
        name: What the file is called in errors.
        size: Its bytes.
    """

    def __init__(self, file: BinaryIO, name: str, size: int) -> None:
        self.name = name
        self._file = file
        self._size = size
        self._window = b""
        self._at = 0
        self._start = 0
        self._walked = 0

    @property
    def position(self) -> int:
        """Bytes before the next one."""
        return self._start + self._at

    def take(self, count: int) -> bytes:
        """The next ``count`` bytes: few, as they are held in memory."""
        if self._at + count > len(self._window):
            self._refill(count)
        data = self._window[self._at : self._at + count]
        self._at += count
        return data

    def number(self, code: str) -> Any:
        """The next number, by its letter in `struct`."""
        layout = f"<{code}"
        (value,) = struct.unpack(layout, self.take(struct.calcsize(layout)))
        return value

    def text(self, longest: int) -> str:
        """The next string.

        Raises:
            InputError: longer than that, not there, or not UTF-8.
        """
        length = self.number("Q")
        if length > longest:
            raise self.damaged(f"has a name of {length:,} bytes")
        try:
            return self.take(length).decode("utf-8")
        except UnicodeDecodeError:
            raise self.damaged("has a name that is not UTF-8") from None

    def skip(self, count: int) -> None:
        """Steps over bytes without reading them."""
        self._check_there(count)
        if self._at + count <= len(self._window):
            self._at += count
            return
        self._start = self.position + count
        self._window, self._at = b"", 0
        self._file.seek(self._start)

    def skip_strings(self, count: int) -> None:
        """Steps over strings, most of them in batches."""
        self._check_there(8 * count)
        batch = _batch()
        while count >= _BATCH:
            found = batch.match(self._window, self._at)
            if found:
                self._at = found.end()
            else:  # a long string among them, or the window ends
                self._skip_singly(_BATCH)
            count -= _BATCH
        self._skip_singly(count)

    def damaged(self, reason: str) -> InputError:
        """The error for a header that can't be right."""
        return InputError(
            f"The GGUF file {reason}.",
            hint="The header is damaged; download the file again.",
            location=self.name,
        )

    def _skip_singly(self, count: int) -> None:
        for _ in range(count):
            self.skip(self.number("Q"))

    def _check_there(self, count: int) -> None:
        if count > self._size - self.position:
            raise self.damaged(f"ends before its header does: it has {self._size:,} bytes")

    def _refill(self, count: int) -> None:
        self._check_there(count)
        rest = self._window[self._at :]
        self._start, self._at = self.position, 0
        self._walked += _WINDOW
        if self._walked > HEADER_LIMIT:
            raise files.too_large(self._walked, HEADER_LIMIT, f"{self.name} (header)")
        self._window = rest + self._file.read(max(count, _WINDOW) - len(rest))
        if len(self._window) < count:
            raise self.damaged("was cut short while it was read")


@contextmanager
def open_cursor(path: Path, size: int) -> Iterator[Cursor]:
    """Opens a file of ``size`` bytes for reading its header.

    Raises:
        InputError: it can't be opened or read.
    """
    try:
        with path.open("rb") as file:
            yield Cursor(file, str(path), size)
    except OSError as error:
        raise files.explain(error, path) from None


@cache
def _batch() -> re.Pattern[bytes]:
    """So many short strings in a row: for each length its eight bytes, then that many bytes.

    Possessive, so it never goes back. Several times as fast as a loop over half a million tokens.
    """
    strings = b"|".join(
        re.escape(struct.pack("<Q", length)) + b".{%d}" % length for length in range(_SHORT)
    )
    return re.compile(b"(?:%s){%d}+" % (strings, _BATCH), re.DOTALL)
