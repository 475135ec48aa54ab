"""YAML parser events → values and places, refusing at the first event that is not accepted.

Scalars are typed as in YAML 1.2's core schema, minus its oddities: only ``true`` and ``false`` are
booleans, and only plain decimal numbers are numbers (``012`` and ``0x1F`` stay text, as do dates).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

from yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from kvplan.errors import InputError
from kvplan.sources.yaml_document import KeyPath, YamlDocument

MAX_DEPTH = 50
# A spec or a scenario holds some hundred values. The bound keeps any file under a second.
MAX_VALUES = 20_000

_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]*)", re.ASCII)
_FLOAT = re.compile(
    r"[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", re.ASCII
)
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|nan)", re.ASCII | re.IGNORECASE)
_LONGEST_NUMBER = 30
_WORDS: Mapping[str, bool | None] = {
    "true": True,
    "false": False,
    "null": None,
    "~": None,
    "": None,
}


class EventReader:
    """Reads the events of one document.

    Args:
        name: The file, as messages name it.
        events: What the parser sees.
        repeated: Where it is given, keys that stand twice are added to it (place and sentence)
            instead of ending the reading; the first one's value counts.
    """

    def __init__(
        self,
        name: str,
        events: Iterator[Event],
        repeated: list[tuple[str, str]] | None = None,
    ) -> None:
        self._name = name
        self._repeated = repeated
        self._events = events
        self._places: dict[KeyPath, tuple[int, int]] = {}

    def document(self) -> YamlDocument:
        """The document.

        Raises:
            InputError: no document, a second one, or something in it that is not accepted.
        """
        root: dict[str, Any] = {}
        for event in self._events:
            if isinstance(event, DocumentStartEvent):
                if self._places:
                    self._refuse(event, "A second document starts here.", "Keep one per file.")
                root = self._root(next(self._events))
        if not self._places:
            raise InputError(
                "The file is empty.", hint="Write `key: value` lines.", location=self._name
            )
        return YamlDocument(self._name, root, self._places)

    def _root(self, first: Event) -> dict[str, Any]:
        self._places[()] = _place(first)
        self._check(first)
        if not isinstance(first, MappingStartEvent):
            self._refuse(first, "The file does not hold keys.", "Write `key: value` lines.")
        return self._mapping(())

    def _value(self, event: Event, path: KeyPath) -> Any:
        self._check(event)
        if len(self._places) > MAX_VALUES:
            self._refuse(event, f"The file holds more than {MAX_VALUES:,} values.", "Split it.")
        if len(path) > MAX_DEPTH:
            self._refuse(event, f"This is nested deeper than {MAX_DEPTH} levels.", "Flatten it.")
        if isinstance(event, MappingStartEvent):
            return self._mapping(path)
        if isinstance(event, SequenceStartEvent):
            return self._sequence(path)
        return self._scalar(event)

    def _mapping(self, path: KeyPath) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for event in self._events:
            if isinstance(event, MappingEndEvent):
                break
            key = self._key(event)
            if key in found:
                self._repeat(event, key, self._places[(*path, key)][0])
                self._value(next(self._events), (*path, key))
                continue
            self._places[(*path, key)] = _place(event)
            found[key] = self._value(next(self._events), (*path, key))
        return found

    def _sequence(self, path: KeyPath) -> list[Any]:
        found: list[Any] = []
        for event in self._events:
            if isinstance(event, SequenceEndEvent):
                break
            item = (*path, len(found))
            self._places[item] = _place(event)
            found.append(self._value(event, item))
        return found

    def _key(self, event: Event) -> str:
        self._check(event)
        if not isinstance(event, ScalarEvent):
            self._refuse(event, "A key is a word, not a list or a mapping.", "Write `key: value`.")
        if event.value == "":
            self._refuse(event, "A key is missing before the colon.", "Write `key: value`.")
        return str(event.value)

    def _scalar(self, event: Event) -> Any:
        text = str(getattr(event, "value", ""))
        # A scalar in quotes, or a block of text, is a string whatever it looks like.
        plain = bool(getattr(event, "implicit", (False,))[0])
        return self._plain(event, text) if plain else text

    def _plain(self, event: Event, text: str) -> Any:
        if text in _WORDS:
            return _WORDS[text]
        if _NOT_FINITE.fullmatch(text):
            self._refuse(event, f"{text} is not a number to plan with.", "Give a finite number.")
        if not _FLOAT.fullmatch(text):
            return text
        if len(text) > _LONGEST_NUMBER:
            self._refuse(event, "This number is too long.", f"At most {_LONGEST_NUMBER} digits.")
        if _INTEGER.fullmatch(text):
            return int(text)
        if not math.isfinite(float(text)):
            self._refuse(event, f"{text} is too large a number.", "Give a finite number.")
        return float(text)

    def _check(self, event: Event) -> None:
        # Aliases can make a small file explode; nothing here is long enough to need them.
        if isinstance(event, AliasEvent) or getattr(event, "anchor", None) is not None:
            self._refuse(
                event, "Anchors (&) and aliases (*) are not accepted.", "Write the value out."
            )
        tag = getattr(event, "tag", None)
        if tag is not None:
            self._refuse(
                event, f"The tag {_shown(str(tag))} is not accepted.", "Write the value without it."
            )

    def _repeat(self, event: Event, key: str, first_line: int) -> None:
        """A key that is there already: noted where the caller collects problems, else refused."""
        message = f"The key {_shown(key)} is already on line {first_line}."
        if self._repeated is None:
            self._refuse(event, message, "Keep one of them.")
        line, column = _place(event)
        self._repeated.append((f"{self._name}:{line}:{column}", message))

    def _refuse(self, event: Event, message: str, hint: str) -> NoReturn:
        line, column = _place(event)
        raise InputError(message, hint=hint, location=f"{self._name}:{line}:{column}")


def _place(event: Event) -> tuple[int, int]:
    mark = event.start_mark
    return (mark.line + 1, mark.column + 1) if mark else (1, 1)


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "…")
