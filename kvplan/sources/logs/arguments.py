"""Settings as engines print them: ``{'a': 1}``, ``Namespace(a=1)``, ``a=1, b='x'``.

Nothing is evaluated: the text is cut at its top-level commas, and only plain values (words,
numbers, quoted strings) of the settings asked for are read. One whose end is missing is left out;
brackets that do not pair show that the text is damaged, and then nothing is read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from kvplan.sources.logs.facts import Value

_LONGEST_VALUE = 300
# A string up to its closing quote, or any one character.
_TOKEN = re.compile(r"""'(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+"|[^'"\[\](){},]++|.""", re.DOTALL)
_KEY = re.compile(r"\s*(?:'([\w.-]{1,60})'\s*:|([A-Za-z_][\w.]{0,60})\s*=)\s*(.*)", re.DOTALL)
_INTEGER, _DECIMAL = re.compile(r"-?\d{1,16}"), re.compile(r"-?\d{1,9}\.\d{1,17}")
_WORD = re.compile(r"[\w./:@+-]{1,300}")
# After the bracket that closed all: it was not the one that it seems to be.
_GOES_ON = frozenset({",", ")", "]", "}"})
_PAIRS = {")": "(", "]": "[", "}": "{"}


def read_arguments(text: str, wanted: Mapping[str, str], *, whole: bool) -> dict[str, Value]:
    """The settings ``wanted`` (their names → names of facts) that ``text`` gives a plain value.

    Args:
        text: From the opening bracket, or from the first ``name=``.
        wanted: What to look for.
        whole: Whether the end of ``text`` is the end of what was written.
    """
    found: dict[str, Value] = {}
    named = False  # whether settings are written name=value, not 'name': value
    for place, item in enumerate(_items(text, whole=whole)):
        if match := _KEY.fullmatch(item):
            named = match[2] is not None if place == 0 else named
            name = wanted.get(match[1] or match[2])
            value = _plain(match[3].strip())
            if name is not None and value is not None and (match[2] is not None) is named:
                found[name] = value
    return found


def _items(text: str, *, whole: bool) -> list[str]:
    """Top-level pieces between commas; of a bracket, those within. None of what is damaged."""
    opened = re.match(r"\s*(?:[A-Za-z_]*([({]))?", text)
    place = opened.end() if opened and opened[1] else 0
    stack = [opened[1]] if opened and opened[1] else []
    outermost, start, items = len(stack), place, list[str]()
    for token in _TOKEN.finditer(text, place):
        character = token[0]
        if character in ("'", '"'):  # opened and never closed: all that follows is inside
            return items
        if character in _PAIRS.values():
            stack.append(character)
        elif character in _PAIRS and (not stack or stack.pop() != _PAIRS[character]):
            # Old releases close a bracket that stands before what is read here.
            if stack or character != ")" or text[token.end() :].strip():
                return []
            items.append(text[start : token.start()])
            return items
        if len(stack) < outermost:
            items.append(text[start : token.start()])
            return [] if text[token.end() :].lstrip()[:1] in _GOES_ON else items
        if character == "," and len(stack) == outermost:
            items.append(text[start : token.start()])
            start = token.end()
    if whole and not stack:
        items.append(text[start:])
    return items


def _plain(written: str) -> Value | None:
    """A plain value; None for ``None``, for what is nested, and for what is not understood."""
    if len(written) > _LONGEST_VALUE or written == "None":
        return None
    if written in ("True", "False"):
        return written == "True"
    if _INTEGER.fullmatch(written):
        return int(written)
    if _DECIMAL.fullmatch(written):
        return float(written)
    if written[:1] in ("'", '"') and written[-1:] == written[:1] and "\\" not in written:
        return written[1:-1] or None
    return written if _WORD.fullmatch(written) else None
