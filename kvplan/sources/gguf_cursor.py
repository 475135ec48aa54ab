"""Cursor: a place in a GGUF file's header, read through a window of fixed size."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

from kvplan.errors import InputError
from kvplan.sources import files

HEADER_LIMIT = 256 * 2**20  # bytes that are gone through; the largest vocabularies take some 16 MiB
_WINDOW = 2**20
_LENGTH = struct.Struct("<Q")


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

    def move(self, position: int) -> None:
        """Goes to a byte of the file, back or forth."""
        self._start, self._window, self._at = position, b"", 0
        self._file.seek(position)

    def take(self, count: int) -> bytes:
        """The next ``count`` bytes: few, as they are held in memory."""
        if self._at + count > len(self._window):
            self._refill(count)
        data = self._window[self._at : self._at + count]
        self._at += count
        return data

    def number(self, code: str) -> Any:
        """The next number, by its letter in `struct`."""
        layout = _layout(code)
        (value,) = layout.unpack(self.take(layout.size))
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
        self.check_there(count)
        if self._at + count <= len(self._window):
            self._at += count
        else:
            self.move(self.position + count)

    def skip_strings(self, count: int) -> None:
        """Steps from string to string by their lengths."""
        self.check_there(8 * count)
        while count:
            stepped = self._skip_some(count)
            if not stepped:  # the window ends within the next length
                self.skip(self.number("Q"))
                stepped = 1
            count -= stepped

    def find(self, texts: tuple[bytes, ...], stop: int) -> int | None:
        """Where the first of some short texts begins, from here on; the cursor stays behind it.

        Args:
            texts: Bytes.
            stop: Position in the file beyond which nothing is looked for.

        Returns:
            Its position in the file, or None.
        """
        longest = max(map(len, texts))
        while self.position < stop:
            places = [self._window.find(text, self._at) for text in texts]
            found = min((place for place in places if place >= 0), default=None)
            if found is not None:
                self._at = found + 1
                return self._start + found
            self._at = max(self._at, len(self._window) - longest + 1)
            if self._size - self.position < longest:
                return None
            self.move(self.position)  # nothing of the old window is copied into the next
            self._fill(longest)
        return None

    def check_there(self, count: int) -> None:
        """Whether so many bytes follow.

        Raises:
            InputError: the file ends before.
        """
        if count > self._size - self.position:
            raise self.damaged(f"ends before its header does: it has {self._size:,} bytes")

    def damaged(self, reason: str) -> InputError:
        """The error for a header that can't be right."""
        return InputError(
            f"The GGUF file {reason}.",
            hint="The header is damaged; download the file again.",
            location=self.name,
        )

    def _skip_some(self, count: int) -> int:
        """Steps over strings whose lengths lie in the window; how many."""
        window, at, length_at = self._window, self._at, _LENGTH.unpack_from
        done = 0
        try:
            # Run for every token: nothing in it but the chain of lengths.
            for done in range(count):  # noqa: B007 - how many there were when the window ended
                at += 8 + length_at(window, at)[0]
            done = count
        except (struct.error, OverflowError):
            pass
        self.skip(at - self._at)
        return done

    def _refill(self, count: int) -> None:
        self.check_there(count)
        self._walked += _WINDOW
        if self._walked > HEADER_LIMIT:
            raise files.too_large(self._walked, HEADER_LIMIT, f"{self.name} (header)")
        self._fill(count)

    def _fill(self, count: int) -> None:
        rest = self._window[self._at :]
        self._start, self._at = self.position, 0
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
def _layout(code: str) -> struct.Struct:
    return struct.Struct(f"<{code}")
