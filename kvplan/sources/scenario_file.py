"""The bytes of a scenario file, from disk or standard input."""

from __future__ import annotations

import sys
from pathlib import Path

from kvplan.errors import InputError
from kvplan.sources.files import read_whole, too_large
from kvplan.sources.yaml_reader import MAX_BYTES

STANDARD_INPUT = "-"


def read_scenario_file(path: Path) -> bytes:
    """The bytes of a regular file, or of standard input for ``-``.

    Raises:
        UsageError: there is no such file.
        InputError: no regular file, unreadable, larger than a scenario may be, or closed.
    """
    if str(path) != STANDARD_INPUT:
        return read_whole(path, limit=MAX_BYTES)
    if sys.stdin is None:
        raise InputError("Standard input is closed.", hint="Name a file.", location="-")
    data = sys.stdin.buffer.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise too_large(len(data), MAX_BYTES, "-")
    return data
