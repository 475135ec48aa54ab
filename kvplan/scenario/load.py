"""A scenario file and the files that it extends, read and checked in place."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from kvplan.errors import InputError, KvplanError
from kvplan.scenario.boundary import below, root_of
from kvplan.scenario.environment import filled
from kvplan.scenario.ignores import Ignore, read_ignores
from kvplan.scenario.option_checks import problems_of_file
from kvplan.scenario.problems import Found, refuse
from kvplan.scenario.schema import SCHEMA, ScenarioFile
from kvplan.sources.yaml_document import YamlDocument
from kvplan.sources.yaml_reader import decode_yaml
from kvplan.sources.yaml_validation import find_problems

_DEEPEST = 10
_MOST_FILES = 100

ReadBytes = Callable[[Path], bytes]


@dataclass(frozen=True, slots=True)
class Sources:
    """Where files come from and how far they may reach.

    Attributes:
        read: The bytes of a file.
        variables: The environment.
        inside: Paths have to stay in the repository of the file that was named.
    """

    read: ReadBytes
    variables: Mapping[str, str] = field(default_factory=dict)
    inside: bool = True


@dataclass(frozen=True, slots=True)
class LoadedFile:
    """One file, checked.

    Attributes:
        root: The repository that its paths have to stay in, or None where they may go anywhere.
        bases: The files that it extends, in order, each with its own.
    """

    path: Path
    document: YamlDocument
    content: ScenarioFile
    ignores: Mapping[int, tuple[Ignore, ...]]
    root: Path | None
    bases: tuple[LoadedFile, ...] = ()

    def in_order(self) -> tuple[LoadedFile, ...]:
        """Its bases, theirs first, and then the file itself."""
        return (*(each for base in self.bases for each in base.in_order()), self)


def load(path: Path, sources: Sources) -> LoadedFile:
    """Reads a scenario file.

    Raises:
        InputError: one of the files is no scenario file; all its problems at once.
        UsageError: there is no such file.
    """
    root = root_of(path) if sources.inside else None
    return _Loader(sources, root).load(path, ())


class _Loader:
    """Follows ``extends`` from file to file."""

    def __init__(self, sources: Sources, root: Path | None) -> None:
        self._sources = sources
        self._root = root
        self._files = 0

    def load(self, path: Path, above: tuple[Path, ...]) -> LoadedFile:
        self._files += 1
        loaded = _checked(path, self._sources, self._root)
        bases = tuple(
            self._base(loaded, name, location, (*above, path.resolve()))
            for name, location in _extended(loaded.document)
        )
        return replace(loaded, bases=bases)

    def _base(
        self, file: LoadedFile, name: str, location: str, above: tuple[Path, ...]
    ) -> LoadedFile:
        target = file.path.parent / name
        if self._root is not None:
            below(self._root, target, location=location)
        if target.resolve() in above:
            raise InputError(
                f"{name!r} extends this file in turn.",
                hint="A file can't come before itself.",
                location=location,
            )
        if len(above) >= _DEEPEST or self._files >= _MOST_FILES:
            raise InputError(
                "Too many files extend one another.",
                hint=f"At most {_DEEPEST} levels and {_MOST_FILES} files.",
                location=location,
            )
        try:
            return self.load(target, above)
        except KvplanError as error:
            if error.location is not None:
                raise
            raise InputError(error.message, hint=error.hint, location=location) from None


def _checked(path: Path, sources: Sources, root: Path | None) -> LoadedFile:
    """One file without those that it extends; all that is wrong in it is said at once."""
    raw, name = sources.read(path), str(path)
    repeated: list[tuple[str, str]] = []
    document = decode_yaml(raw.removeprefix(codecs.BOM_UTF8), name, repeated)
    _check_schema(document)
    document, unset = filled(document, sources.variables)
    content, problems = find_problems(document, ScenarioFile)
    ignores, unclear = read_ignores(raw.decode("utf-8"), name)
    said = {each.location for each in unset}  # the value is missing, so its type is no news
    problems = [each for each in problems if each[0] not in said]
    found = [*(Found(*each) for each in (*repeated, *problems)), *unset, *unclear]
    if found:  # else they are looked at where all layers are known
        found += problems_of_file(document)
    refuse(sorted(found, key=_order), file=name)
    assert content is not None  # noqa: S101 - it has no problem
    return LoadedFile(path, document, content, ignores, root)


def _order(found: Found) -> tuple[int, int]:
    """By line and column."""
    _, line, column = found.location.rsplit(":", 2)
    return int(line), int(column)


def _check_schema(document: YamlDocument) -> None:
    if document.data.get("schema") != SCHEMA:
        raise InputError(
            "This is not a scenario file of this version of kvplan.",
            hint=f"Its first line is `schema: {SCHEMA}`.",
            location=document.location(("schema",)),
        )


def _extended(document: YamlDocument) -> list[tuple[str, str]]:
    """The files that a document extends, each with the place where it says so."""
    named: Any = document.data.get("extends")
    if named is None:
        return []
    if isinstance(named, str):
        return [(named, document.location(("extends",)))]
    return [(name, document.location(("extends", at))) for at, name in enumerate(named)]
