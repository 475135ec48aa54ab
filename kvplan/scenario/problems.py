"""Several problems as one error, each with its place: a reader mends them in one go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kvplan.errors import InputError

_MOST = 20
_HINT = "Correct the file at the place named."


@dataclass(frozen=True, slots=True)
class Found:
    """One problem: a sentence and where."""

    location: str
    sentence: str


def refuse(found: Sequence[Found], *, file: str) -> None:
    """Raises one error for all problems; nothing if there are none.

    Raises:
        InputError: there is at least one.
    """
    if not found:
        return
    if len(found) == 1:
        raise InputError(found[0].sentence, hint=_HINT, location=found[0].location)
    said = [each for each in found if each.sentence][:_MOST]
    lines = [f"{each.location}: {each.sentence}" for each in said]
    if len(found) > len(said):
        lines.append(f"and {len(found) - len(said):,} more")
    raise InputError("\n  ".join([f"{len(found):,} problems:", *lines]), hint=_HINT, location=file)
