"""``${NAME}`` and ``${NAME:-default}`` in values, taken from the environment."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from kvplan.scenario.problems import Found
from kvplan.sources.yaml_document import KeyPath, YamlDocument

_REFERENCE = re.compile(r"\$?\$\{([A-Za-z_][A-Za-z0-9_]{0,99})(?::-([^}]{0,500}))?\}", re.ASCII)
_INTEGER = re.compile(r"-?(?:0|[1-9]\d{0,17})", re.ASCII)
_FLOAT = re.compile(r"-?\d{1,18}\.\d{1,18}", re.ASCII)
# What no file may hold either. Bytes that are no UTF-8 are kept by Python as surrogates.
_TEXT = re.compile(r"[^\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]*")
_WORDS = {"true": True, "false": False, "null": None}


def filled(
    document: YamlDocument, variables: Mapping[str, str]
) -> tuple[YamlDocument, list[Found]]:
    """The document with references replaced, and those that can't be.

    A value that is nothing but one reference is typed as if it stood in the file; ``$${NAME}``
    stays as ``${NAME}``.
    """
    missing: list[Found] = []

    def walk(node: Any, path: KeyPath) -> Any:
        if isinstance(node, dict):
            return {key: walk(value, (*path, key)) for key, value in node.items()}
        if isinstance(node, list):
            return [walk(value, (*path, place)) for place, value in enumerate(node)]
        if not isinstance(node, str) or "${" not in node:
            return node
        unset = list(_unset(node, variables))
        missing.extend(Found(document.location(path), sentence) for sentence in unset)
        return node if unset else _value(node, variables)

    data = walk(document.data, ())
    return replace(document, data=data), missing


def _unset(text: str, variables: Mapping[str, str]) -> Iterator[str]:
    """What is wrong with the variables that a text names."""
    for match in _REFERENCE.finditer(text):
        name, default = match[1], match[2]
        if match[0].startswith("$$"):
            continue
        if name not in variables and default is None:
            yield f"The environment has no {name}: set it, or write ${{{name}:-DEFAULT}}."
        elif not _TEXT.fullmatch(variables.get(name, "")):
            yield f"What the environment has as {name} is no printable text."


def _value(text: str, variables: Mapping[str, str]) -> Any:
    def put(match: re.Match[str]) -> str:
        if match[0].startswith("$$"):
            return match[0][1:]
        return variables.get(match[1], match[2] or "")

    whole = _REFERENCE.fullmatch(text)
    found = _REFERENCE.sub(put, text)
    return typed(found) if whole and not text.startswith("$$") else found


def typed(text: str) -> Any:
    """A word as YAML would type it.

    >>> typed("8"), typed("0.9"), typed("true"), typed("32k")
    (8, 0.9, True, '32k')
    """
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _FLOAT.fullmatch(text) else text
