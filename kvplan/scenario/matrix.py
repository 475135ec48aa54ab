"""``matrix:``: one scenario → one variant for every combination of its values."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

from kvplan.errors import InputError, UsageError
from kvplan.scenario.dotted import keys_of, with_value
from kvplan.scenario.layers import Layered, MergedDocument

_MOST = 1000


@dataclass(frozen=True, slots=True)
class Variant:
    """A scenario without a matrix.

    Attributes:
        name: ``chat``, or ``chat[tp=2, gpu=L4-24GB]``.
        scenario: The name alone.
    """

    name: str
    scenario: str
    layered: Layered
    document: MergedDocument


def expand(layered: Layered) -> Iterator[Variant]:
    """The variants of a scenario; one without a matrix is its own only variant.

    Raises:
        InputError: a key that can't be varied, or too many combinations.
    """
    document = layered.document
    matrix: dict[str, list[Any]] = document.data.get("matrix") or {}
    axes = {name: _keys(document, name) for name in matrix}
    count = math.prod(len(values) for values in matrix.values())
    if count > _MOST:
        raise InputError(
            f"The matrix has {count:,} combinations.",
            hint=f"At most {_MOST:,}.",
            location=document.location(("matrix",)),
        )
    for chosen in product(*(range(len(values)) for values in matrix.values())):
        varied, words = document, []
        for (name, values), at in zip(matrix.items(), chosen, strict=True):
            place = document.place(("matrix", name, at))
            varied = with_value(varied, axes[name], values[at], place)
            words.append(f"{name}={_word(values[at])}")
        title = f"{layered.name}[{', '.join(words)}]" if words else layered.name
        yield Variant(title, layered.name, layered, varied)


def _keys(document: MergedDocument, name: str) -> tuple[str, ...]:
    try:
        return keys_of(name)
    except UsageError as error:
        raise InputError(
            error.message, hint=error.hint, location=document.location(("matrix", name))
        ) from None


def _word(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= 60 else text[:59] + "…"
