"""A model spec as text: the inverse of reading ``model_specs/ORG--NAME.yaml``.

Every value is written so that `yaml_reader` reads the same one back. Lists stand inline, which
keeps a model of 80 layers on one screen.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kvplan.sources.model_specs import ModelSpecFile

_WIDTH = 100
_INDENT = "  "
_GROUPS = (
    ("schema", "id", "base"),
    ("config", "source", "revision"),
    ("processor",),
    ("checkpoint",),
    ("license",),
    ("notes",),
)
# Words that need no quotes: neither numbers nor YAML's own words, by this or an older version.
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./@-]*(?::[A-Za-z0-9_./@-]+)*", re.ASCII)
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*", re.ASCII)
_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})


def spec_text(spec: ModelSpecFile) -> str:
    """The file, with an empty line between its parts."""
    parts = spec.model_dump(by_alias=True, exclude_none=True)
    # In a configuration, null is a value of its own.
    parts["config"] = spec.config
    return "\n".join(
        "".join(f"{line}\n" for line in _lines(group, ""))
        for names in _GROUPS
        if (group := {name: parts[name] for name in names if parts.get(name)})
    )


def _lines(mapping: Mapping[str, Any], indent: str) -> Iterator[str]:
    for name, value in mapping.items():
        start = f"{indent}{_key(name)}:"
        if isinstance(value, Mapping) and value:
            yield start
            yield from _lines(value, indent + _INDENT)
        elif isinstance(value, Sequence) and not isinstance(value, str):
            yield from _list(start, [inline(item) for item in value], indent)
        else:
            yield f"{start} {inline(value)}"


def _list(start: str, items: list[str], indent: str) -> Iterator[str]:
    line = f"{start} [{', '.join(items)}]"
    if len(line) <= _WIDTH:
        yield line
        return
    yield f"{start} ["
    row = ""
    for count, item in enumerate(items, 1):
        word = item if count == len(items) else f"{item},"
        longer = f"{row} {word}" if row else f"{indent}{_INDENT}{word}"
        if row and len(longer) > _WIDTH:
            yield row
            longer = f"{indent}{_INDENT}{word}"
        row = longer
    yield row
    yield f"{indent}]"


def inline(value: Any) -> str:
    """A value on one line, as YAML."""
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_key(name)}: {inline(item)}' for name, item in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(inline, value))}]"
    if isinstance(value, str):
        plain = _PLAIN.fullmatch(value) and value.casefold() not in _WORDS
        return value if plain else _quoted(value)
    return _quoted(value)


def _key(name: str) -> str:
    plain = _PLAIN_KEY.fullmatch(name) and name.casefold() not in _WORDS
    return name if plain else _quoted(name)


def _quoted(value: Any) -> str:
    # JSON's numbers, words and quoted texts are YAML's too. What can't be seen is escaped.
    text = json.dumps(value, ensure_ascii=False)
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in text)
