"""One line on stderr while a simulation runs; nothing where nobody watches."""

from __future__ import annotations

import sys
from time import monotonic

# A line that moves faster than this can't be read.
_PAUSE_S = 0.1
_BAR = 24


def watched(*, quiet: bool) -> bool:
    """Whether somebody sees the line."""
    return not quiet and sys.stderr is not None and sys.stderr.isatty()


class ProgressLine:
    """A line that is written over.

    Args:
        quiet: Write nothing.
        total: Requests there are, or None where nobody knows.
    """

    def __init__(self, *, quiet: bool, total: int | None = None) -> None:
        self._on = watched(quiet=quiet)
        self._total = total
        self._last = 0.0
        self._width = 0

    def show(self, done: int, now_s: float) -> None:
        """So many requests are done, at that simulated time."""
        if not self._on or monotonic() - self._last < _PAUSE_S:
            return
        self._last = monotonic()
        bar = ""
        if self._total:
            full = min(_BAR, _BAR * done // self._total)
            bar = f"[{'#' * full}{'.' * (_BAR - full)}] "
        self._write(f"{bar}{done:,} requests done, {now_s:,.0f} s simulated")

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
