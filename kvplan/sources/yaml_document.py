"""YamlDocument: what a YAML file says, and where it says it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

# ("caches", 0, "window") is the key `window` of the first item under the key `caches`.
KeyPath = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class YamlDocument:
    """The content of one file with the place of every key.

    Attributes:
        name: The file, as messages name it.
        data: The root mapping.
        places: Line and column, counted from 1, of every key and every list item by its path.
            The root's path is empty.
    """

    name: str
    data: dict[str, Any]
    places: Mapping[KeyPath, tuple[int, int]] = field(repr=False)

    def location(self, path: KeyPath = ()) -> str:
        """``file:line:column`` of a key, or of the nearest thing around it that has a place."""
        while path not in self.places:
            path = path[:-1]
        line, column = self.places[path]
        return f"{self.name}:{line}:{column}"
