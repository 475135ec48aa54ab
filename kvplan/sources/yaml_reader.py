"""A strict reader of YAML: specs and scenarios are written by people, and may come from strangers.

It keeps the place of every key, so that a message can point at it, and refuses what makes YAML
surprising or dangerous: keys stated twice, anchors, tags, several documents, endless nesting.
`yaml_events` says how values are typed; `yaml_validation` turns a document into a model.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import yaml
from yaml.events import Event

from kvplan.errors import InputError
from kvplan.sources.files import explain
from kvplan.sources.yaml_document import KeyPath, YamlDocument
from kvplan.sources.yaml_events import EventReader
from kvplan.sources.yaml_validation import validate

__all__ = ["KeyPath", "YamlDocument", "decode_yaml", "parse_yaml", "read_yaml", "validate"]

MAX_BYTES = 2**20


def read_yaml(path: Path) -> YamlDocument:
    """Reads a file.

    Raises:
        InputError: it can't be read, or is not what `parse_yaml` accepts.
    """
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise explain(error, path) from None
        raise InputError(
            f"The file can't be read: {error.strerror or error}.",
            hint="Check the path.",
            location=str(path),
        ) from None
    except ValueError as error:  # a NUL in the name
        raise explain(error, path) from None
    return decode_yaml(raw, str(path))


def decode_yaml(
    raw: bytes, name: str, repeated: list[tuple[str, str]] | None = None
) -> YamlDocument:
    """Reads the bytes of a file; ``name`` stands for it in messages.

    Keys that stand twice are added to ``repeated``, where it is given, and not raised.

    Raises:
        InputError: it is not UTF-8, or not what `parse_yaml` accepts.
    """
    return parse_yaml(_decode(raw, name), name, repeated)


def parse_yaml(text: str, name: str, repeated: list[tuple[str, str]] | None = None) -> YamlDocument:
    """Reads YAML text; ``name`` stands for the file in messages; ``repeated`` as in `decode_yaml`.

    Raises:
        InputError: broken syntax, more than 1 MiB, or something that this reader refuses.
    """
    _check_text(text, name)
    try:
        return EventReader(name, _events(text.removeprefix("\ufeff")), repeated).document()
    except yaml.MarkedYAMLError as error:
        _refuse_syntax(error, name)
    except yaml.YAMLError as error:
        position = getattr(error, "position", 0)
        raise InputError(
            "There is a character that may not stand in YAML text.",
            hint="Save the file as plain text in UTF-8.",
            location=_place_in_text(text, name, position),
        ) from None


def _events(text: str) -> Iterator[Event]:
    # libyaml's parser is some thirty times faster, and every wheel of PyYAML has it.
    if yaml.__with_libyaml__:
        return yaml.parse(text, Loader=yaml.CSafeLoader)
    return yaml.parse(text, Loader=yaml.SafeLoader)


def _decode(raw: bytes, name: str) -> str:
    if len(raw) > MAX_BYTES:
        _refuse_size(name)
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        column = error.start - raw.rfind(b"\n", 0, error.start)
        raise InputError(
            "The file is not UTF-8 text.",
            hint="Save it as UTF-8.",
            location=f"{name}:{line}:{column}",
        ) from None


def _check_text(text: str, name: str) -> None:
    if len(text) > MAX_BYTES:
        _refuse_size(name)
    try:
        size = len(text.encode("utf-8"))
    except UnicodeEncodeError as error:
        raise InputError(
            "There is half a character in the text.",
            hint="Save it as UTF-8.",
            location=_place_in_text(text, name, error.start),
        ) from None
    if size > MAX_BYTES:
        _refuse_size(name)


def _refuse_size(name: str) -> NoReturn:
    raise InputError(
        "The file is larger than 1 MiB.",
        hint="Specs and scenarios take some kilobytes; is this the right file?",
        location=name,
    )


def _refuse_syntax(error: yaml.MarkedYAMLError, name: str) -> NoReturn:
    mark = error.problem_mark or error.context_mark
    problem = str(error.problem or error.context or "broken syntax")
    hint = "Check the indentation, colons and quotes just before this place."
    if "start any token" in problem:
        hint = "Indent with spaces, not tabs, and put text with special characters in quotes."
    raise InputError(
        f"This is not valid YAML: {problem}.",
        hint=hint,
        location=f"{name}:{mark.line + 1}:{mark.column + 1}" if mark else name,
    ) from None


def _place_in_text(text: str, name: str, position: int) -> str:
    line = text.count("\n", 0, position) + 1
    column = position - text.rfind("\n", 0, position)
    return f"{name}:{line}:{column}"
