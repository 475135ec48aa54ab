"""The licence that a model's card states: on the Hub, or in the head of a ``README.md``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from kvplan.errors import KvplanError
from kvplan.models.facts import ModelFacts
from kvplan.sources import files
from kvplan.sources.local import CONFIG

README = "README.md"
_LIMIT = 2**20
_LONGEST = 100
_FENCE = "---"
_OTHER = "other"  # then the name is a field of its own
_TAG = "license:"
_LINE = re.compile(
    r"(?P<name>license|license_name):\s*(?P<quote>['\"]?)(?P<value>[^'\"#]+)(?P=quote)"
)


class Card(Protocol):
    """What the Hub's client gives of a card."""

    def get(self, key: str, default: object = None) -> object:
        """One field of the card's head."""


def card_license(
    card: Card | Mapping[str, object] | None, tags: Sequence[str] | None
) -> str | None:
    """The licence by a card's fields, else by the repository's one tag for it, else None."""
    if card is not None:
        stated = card.get("license")
        named = card.get("license_name") if stated == _OTHER else None
        for value in (named, stated):
            if isinstance(value, str) and _is_name(value):
                return value
    found = [tag.removeprefix(_TAG) for tag in tags or () if tag.startswith(_TAG)]
    return found[0] if len(found) == 1 and _is_name(found[0]) else None


def with_local_license(facts: ModelFacts) -> ModelFacts:
    """The same facts, with the licence that the ``README.md`` of a local folder states."""
    config = Path(facts.source)
    if facts.license is not None or config.name != CONFIG or not config.is_file():
        return facts
    try:
        text = files.read_whole(config.parent / README, limit=_LIMIT).decode(errors="replace")
    except KvplanError:
        return facts
    stated = card_license(_head(text), None)
    source = f"{README} of the folder" if stated else None
    return facts.model_copy(update={"license": stated, "license_source": source})


def _head(text: str) -> dict[str, object]:
    """The two fields, if each is one word or text on a line of its own."""
    lines = text.splitlines()
    if not lines or lines[0].rstrip() != _FENCE:
        return {}
    found: dict[str, object] = {}
    for line in lines[1:]:
        if line.rstrip() == _FENCE:
            return found
        match = _LINE.match(line)
        if match:
            found[match["name"]] = match["value"].strip()
    return {}


def _is_name(text: str) -> bool:
    return 0 < len(text) <= _LONGEST and text.isprintable() and not text.isspace()
