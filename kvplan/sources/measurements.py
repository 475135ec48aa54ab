"""Measurement records from and to JSON lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from pydantic import ValidationError

from kvplan.errors import InputError
from kvplan.measurement import Measurement
from kvplan.sources.json_reader import parse_json_object
from kvplan.sources.text_lines import name_of, numbered_lines, opened

_LONGEST_RECORD = 2**20  # bytes; real ones have about a thousand
_MOST_SHOWN = 5
_HINT = "Every line is one object with the keys of a measurement record; null is unknown."


def read_measurements(path: str) -> Iterator[Measurement]:
    """The records of a JSON-lines file (``-`` is standard input, gzip is unpacked), in order.

    Blank lines are skipped; keys that kvplan does not know are kept.

    Raises:
        UsageError: no such file.
        InputError: a line that is no record, with ``file:line`` and what is wrong with it.
    """
    name = name_of(path)
    with opened(path) as stream:
        for number, line in numbered_lines(stream, longest=_LONGEST_RECORD, location=name):
            if line.strip():
                yield parse_measurement(line, location=f"{name}:{number}")


def parse_measurement(line: bytes, *, location: str) -> Measurement:
    """One record from one line.

    Raises:
        InputError: not a JSON object, or a value of the wrong kind.
    """
    try:
        values = parse_json_object(line, location)
    except InputError as error:
        # Line and column inside the one line would only confuse.
        message = error.message.replace("The file", "The line")
        raise InputError(message, hint=_HINT, location=location) from None
    return _validated(values, location)


def _validated(values: dict[str, Any], location: str) -> Measurement:
    try:
        return Measurement.model_validate(values)
    except ValidationError as error:
        problems = [f"{_key(each['loc'])}: {each['msg']}" for each in error.errors()[:_MOST_SHOWN]]
        raise InputError(
            f"The record has wrong values: {'; '.join(problems)}.", hint=_HINT, location=location
        ) from None


def _key(loc: tuple[int | str, ...]) -> str:
    return ".".join(str(part) for part in loc)


def write_measurements(records: Iterable[Measurement]) -> Iterator[str]:
    """The lines of a JSON-lines file, each with its end."""
    for record in records:
        yield record.json_line() + "\n"
