"""A bar on stderr while a sweep runs; nothing where nobody watches."""

from __future__ import annotations

import sys
from time import monotonic

# A line that moves faster than this can't be read, and short sweeps need none.
_PAUSE_S = 0.2
_BAR = 30


class ProgressBar:
    """A line that is written over.

    Args:
        quiet: Write nothing.
        noun: What is counted.
    """

    def __init__(self, *, quiet: bool, noun: str = "points") -> None:
        self._on = not quiet and sys.stderr is not None and sys.stderr.isatty()
        self._noun = noun
        self._last = self._start = monotonic()
        self._width = 0

    def show(self, done: int, whole: int) -> None:
        """So many are done, of so many."""
        if not self._on or monotonic() - self._last < _PAUSE_S:
            return
        self._last = monotonic()
        full = _BAR * done // max(1, whole)
        left = (self._last - self._start) * (whole - done) / max(1, done)
        bar = f"[{'#' * full}{'.' * (_BAR - full)}]"
        self._write(f"{bar} {done:,} of {whole:,} {self._noun}, {left:,.0f} s left")

    def clear(self) -> None:
        """Takes the line away."""
        if self._on and self._width:
            self._write("")
            sys.stderr.write("\r")
            sys.stderr.flush()

    def _write(self, text: str) -> None:
        sys.stderr.write(f"\r{text.ljust(self._width)}")
        sys.stderr.flush()
        self._width = max(self._width, len(text))
