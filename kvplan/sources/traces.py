"""Traces of requests in CSV or JSON lines, plain or gzipped, read line by line.

A file of any size is held one line at a time.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Any, BinaryIO, TypeAlias

from kvplan.errors import InputError
from kvplan.sources.text_lines import name_of, numbered_lines, opened
from kvplan.sources.trace_columns import TraceColumns, choose
from kvplan.workloads.requests import Request
from kvplan.workloads.trace import Row, Tally, TraceReading

LONGEST_LINE = 16 * 2**20
"""Bytes; the blocks of a prompt of a million tokens take some 20 kB."""
_PIECE, _SOON_COUNTED = 2**20, 64 * 2**20
"""Bytes: of one look, and as many as are counted in a moment."""
_MISSING = ("", "null", "none")
Lines: TypeAlias = Iterator[tuple[int, bytes]]


@dataclass(frozen=True, slots=True)
class OpenTrace:
    """A trace while it is read.

    Attributes:
        columns: Which column was taken for what.
        requests: The requests; reading them moves on.
        tally: Counts of those read so far.
    """

    columns: TraceColumns
    requests: Iterator[Request]
    tally: Tally


@contextmanager
def open_trace(
    path: str, *, columns: Mapping[str, str] | None = None, block_tokens: int = 512
) -> Iterator[OpenTrace]:
    """Opens a trace; ``-`` is standard input.

    Args:
        path: The file.
        columns: Field → column where the guess from names is not wanted; the arrival's may end in
            a unit: ``ts:ms``.
        block_tokens: Tokens of a block of content, where the trace has such blocks.

    Raises:
        UsageError: no such file or column.
        InputError: it is no trace; also while it is read, with the line.
    """
    location = name_of(path)
    with opened(path) as stream:
        lines = _filled(stream, location)
        first = next(lines, None)
        if first is None:
            raise InputError(
                "The trace is empty.", hint="It needs one request a line.", location=location
            )
        read = _json_rows if first[1].lstrip()[:1] in (b"{", b"[") else _csv_rows
        found, rows = read(first, lines, columns or {}, location)
        reading = TraceReading(location, found.unit_s, block_tokens)
        yield OpenTrace(found, reading.requests(rows), reading.tally)


def about_requests(path: str) -> int | None:
    """About how many requests a trace has: its lines; None where counting would take long.

    Raises:
        UsageError: no such file.
        InputError: it can't be read.
    """
    if path == "-":
        return None
    count = left = 0
    with opened(path) as stream:
        while piece := stream.read(_PIECE):
            count += piece.count(b"\n")
            left += len(piece)
            if left > _SOON_COUNTED:
                return None
    return count


def _filled(stream: BinaryIO, location: str) -> Lines:
    for number, line in numbered_lines(stream, longest=LONGEST_LINE, location=location):
        if line.strip():
            yield number, line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line


def _text(number: int, line: bytes, location: str) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError:
        raise InputError(
            "The line is not UTF-8 text.", hint=_RIGHT_FILE, location=f"{location}:{number}"
        ) from None


_RIGHT_FILE = "Check that this is the file you meant: a trace has one request a line."


def _csv_rows(
    first: tuple[int, bytes], lines: Lines, wanted: Mapping[str, str], location: str
) -> tuple[TraceColumns, Iterator[Row]]:
    header_text = _text(*first, location)
    delimiter = max(",;\t", key=header_text.count)
    header = [name.strip() for name in _cells(first[0], header_text, delimiter, location)]
    found = choose(header, wanted, f"{location}:{first[0]}")
    places = [None if name is None else header.index(name) for name in found.names]
    rows = (
        (number, _picked(number, _cells(number, text, delimiter, location), places, location))
        for number, text in ((number, _text(number, line, location)) for number, line in lines)
    )
    return found, rows


def _cells(number: int, text: str, delimiter: str, location: str) -> list[str]:
    try:
        return next(csv.reader([text], delimiter=delimiter, strict=True))
    except (csv.Error, StopIteration):
        raise InputError(
            "The line is not CSV.", hint=_RIGHT_FILE, location=f"{location}:{number}"
        ) from None


def _picked(
    number: int, cells: Sequence[str], places: Sequence[int | None], location: str
) -> list[Any]:
    try:
        picked = [None if place is None else cells[place] for place in places]
    except IndexError:
        raise InputError(
            f"The line has only {len(cells)} columns.",
            hint="Every line has the columns of the first.",
            location=f"{location}:{number}",
        ) from None
    return [None if c is None or c.strip().lower() in _MISSING else _listed(c) for c in picked]


def _listed(cell: str) -> Any:
    """A list that stands in a cell, or the cell."""
    if not cell.startswith("["):
        return cell
    try:
        return json.loads(cell)
    except (ValueError, RecursionError):
        return cell


def _json_rows(
    first: tuple[int, bytes], lines: Lines, wanted: Mapping[str, str], location: str
) -> tuple[TraceColumns, Iterator[Row]]:
    top = _object(*first, location)
    found = choose(list(top), wanted, f"{location}:{first[0]}")
    pick = _picker(found.names)
    rows = (
        (number, pick(_object(number, line, location))) for number, line in chain([first], lines)
    )
    return found, rows


def _picker(names: Sequence[str | None]) -> Callable[[Mapping[str, Any]], list[Any]]:
    def pick(row: Mapping[str, Any]) -> list[Any]:
        return [None if name is None else row.get(name) for name in names]

    return pick


def _object(number: int, line: bytes, location: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        row = None
    if not isinstance(row, dict):
        raise InputError(
            "The line is not a JSON object.",
            hint="Write one request a line; jq -c '.[]' turns a list into that.",
            location=f"{location}:{number}",
        )
    return row
