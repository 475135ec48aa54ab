"""Defaults below scenarios, extended files below the ones that extend them: one merged scenario.

Every value keeps the place it came from. Mappings are merged key by key; `expect` grows, since a
check that is dropped unseen would be one that passes; all else is replaced.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from typing_extensions import override

from kvplan.check_result import Place
from kvplan.scenario.ignores import Ignore
from kvplan.scenario.load import LoadedFile
from kvplan.sources.yaml_document import KeyPath, YamlDocument

_GROWS = "expect"
_MERGED = frozenset(("options", "workload", "prices", "sessions", "matrix"))

Places = dict[KeyPath, Place]


@dataclass(frozen=True, slots=True)
class MergedDocument(YamlDocument):
    """A scenario's keys from several files."""

    origins: Mapping[KeyPath, Place] = field(default_factory=dict)

    @override
    def location(self, path: KeyPath = ()) -> str:
        """``file:line:column`` of a key, wherever it came from."""
        return str(self.place(path))

    def place(self, path: KeyPath = ()) -> Place:
        """Where a key, or the nearest thing around it, came from."""
        while path not in self.origins:
            path = path[:-1]
        return self.origins[path]


@dataclass(frozen=True, slots=True)
class Layered:
    """One scenario with everything that it inherits, before its matrix is expanded.

    Attributes:
        ignores: Of all files, by file and line.
    """

    name: str
    file: LoadedFile
    document: MergedDocument
    ignores: Mapping[tuple[str, int], tuple[Ignore, ...]]

    @property
    def root(self) -> Path | None:
        """What paths have to stay below."""
        return self.file.root


def layered(file: LoadedFile) -> tuple[Layered, ...]:
    """The scenarios of a file and of those it extends, in the order in which they first come."""
    files = file.in_order()
    ignores = {
        (str(each.path), line): found for each in files for line, found in each.ignores.items()
    }
    names = dict.fromkeys(name for each in files for name in each.content.scenarios)
    indexed = tuple((each, _index(each.document)) for each in files)
    return tuple(Layered(name, file, _merge(indexed, name), ignores) for name in names)


def pools(file: LoadedFile) -> dict[str, tuple[Any, Place]]:
    """The pools by name, each with its place; a later file's win."""
    return {
        name: (pool, place_in(each.document, ("pools", name)))
        for each in file.in_order()
        for name, pool in each.content.pools.items()
    }


def place_in(document: YamlDocument, path: KeyPath) -> Place:
    """The place of a key in its own file."""
    while path not in document.places:
        path = path[:-1]
    line, column = document.places[path]
    return Place(file=document.name, line=line, column=column)


# The places in a file by the key of a scenario (or of the defaults) that they are below.
_Index = Mapping[KeyPath, list[tuple[KeyPath, Place]]]


def _index(document: YamlDocument) -> _Index:
    found: dict[KeyPath, list[tuple[KeyPath, Place]]] = {}
    for path, (line, column) in document.places.items():
        depth = 2 if path[:1] == ("defaults",) else 3
        if len(path) >= depth:
            place = Place.model_construct(file=document.name, line=line, column=column)
            found.setdefault(path[:depth], []).append((path[depth:], place))
    return found


def _merge(files: tuple[tuple[LoadedFile, _Index], ...], name: str) -> MergedDocument:
    data: dict[str, Any] = {}
    origins: Places = {}
    for each, index in files:
        _put(data, origins, each.document, index, ("defaults",))
    for each, index in files:
        if name in each.content.scenarios:
            origins[()] = place_in(each.document, ("scenarios", name))
            _put(data, origins, each.document, index, ("scenarios", name))
    return merged_document(data, origins)


def merged_document(data: dict[str, Any], origins: Places) -> MergedDocument:
    """A document of keys with their origins."""
    return MergedDocument(
        name=origins[()].file,
        data=data,
        places={path: (place.line, place.column) for path, place in origins.items()},
        origins=origins,
    )


def _put(
    data: dict[str, Any], origins: Places, document: YamlDocument, index: _Index, at: KeyPath
) -> None:
    node: Any = document.data
    for part in at:
        node = node.get(part) or {}
    for key, value in node.items():
        _put_key(data, origins, (key,), value)
        for path, place in index.get((*at, key), ()):
            origins[_shifted((key, *path), data, value)] = place


def _put_key(data: dict[str, Any], origins: Places, path: KeyPath, value: Any) -> None:
    key = path[-1]
    old = data.get(str(key))
    if isinstance(old, dict) and isinstance(value, dict) and key in _MERGED:
        for inner, each in value.items():
            _put_key(old, origins, (*path, inner), each)
        return
    if key == _GROWS and len(path) == 1 and isinstance(old, list) and isinstance(value, list):
        data[_GROWS] = [*old, *value]
        return
    for known in [known for known in origins if known[: len(path)] == path]:
        del origins[known]
    data[str(key)] = _copied(value)


def _copied(value: Any) -> Any:
    """Mappings are merged into, so each scenario has its own."""
    return {key: _copied(each) for key, each in value.items()} if isinstance(value, dict) else value


def _shifted(path: KeyPath, data: Mapping[str, Any], value: Any) -> KeyPath:
    """Expectations of a later layer follow those that were there."""
    if path[0] != _GROWS or len(path) < 2 or not isinstance(value, list):
        return path
    return (_GROWS, int(path[1]) + len(data[_GROWS]) - len(value), *path[2:])
