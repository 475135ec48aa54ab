"""``--set [SCENARIO:]KEY=VALUE``: a key of one or all scenarios, from the command line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kvplan.check_result import Place
from kvplan.errors import UnknownNameError, UsageError, nearest, shown
from kvplan.scenario.dotted import keys_of, with_value
from kvplan.scenario.layers import MergedDocument
from kvplan.sources.yaml_reader import parse_yaml

FLAG = "--set"


@dataclass(frozen=True, slots=True)
class Override:
    """One ``--set``.

    Attributes:
        scenario: The scenario it is for, or None for all.
    """

    text: str
    scenario: str | None
    keys: tuple[str, ...]
    value: Any


def parse_overrides(texts: Sequence[str]) -> tuple[Override, ...]:
    """Reads them; values are typed as in a scenario file.

    Raises:
        UsageError: no ``=``, or no key of a scenario.
        InputError: a value that is no YAML.
    """
    return tuple(map(_parse, texts))


def _parse(text: str) -> Override:
    left, equals, right = text.partition("=")
    scenario, colon, key = left.rpartition(":")
    if not equals or not key.strip() or not right.strip() or not right.isprintable():
        raise UsageError(
            f"{shown(text)} sets nothing.",
            hint="Write --set tp=2, or --set chat:options.max_num_seqs=64; null takes a key away.",
            location=FLAG,
        )
    try:
        keys = keys_of(key)
    except UsageError as error:
        raise type(error)(error.message, hint=error.hint, location=FLAG) from None
    value = parse_yaml(f"value: {right}", FLAG).data["value"]
    return Override(text, scenario.strip() if colon else None, keys, value)


def check_names(overrides: Sequence[Override], names: Sequence[str]) -> None:
    """Refuses an override for a scenario that there is not.

    Raises:
        UnknownNameError: no file has it.
    """
    for each in overrides:
        if each.scenario is not None and each.scenario not in names:
            raise UnknownNameError(
                f"There is no scenario {shown(each.scenario)}.",
                hint=nearest(each.scenario, names) or f"There are {', '.join(names[:10])}.",
                location=FLAG,
            )


def overridden(
    document: MergedDocument, scenario: str, overrides: Sequence[Override]
) -> MergedDocument:
    """A variant's document with the overrides that are for it."""
    for each in overrides:
        if each.scenario in (None, scenario):
            place = Place(file=f"{FLAG} {each.text}")
            document = with_value(document, each.keys, each.value, place)
    return document
