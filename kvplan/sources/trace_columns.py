"""Which column of a trace is what: guessed from names that traces use, or as the user says."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kvplan.errors import InputError, UsageError, nearest, shown
from kvplan.workloads.trace import FIELDS

# Column names compared without case, spaces and punctuation. Sources: Azure's LLM inference trace,
# Mooncake's FAST25 traces, BurstGPT, Vidur's processed traces, vLLM's and OpenAI's usage fields.
_NAMES: Mapping[str, tuple[str, ...]] = {
    "arrival": (
        "timestamp",
        "arrivedat",
        "arrival",
        "arrivaltime",
        "arrivaltimestamp",
        "arrivals",
        "time",
        "ts",
        "starttime",
        "requesttime",
    ),
    "prompt": (
        "prompttokens",
        "inputtokens",
        "contexttokens",
        "requesttokens",
        "numprefilltokens",
        "prefilltokens",
        "inputlength",
        "promptlength",
        "promptlen",
        "inputlen",
        "isl",
        "numprompttokens",
    ),
    "output": (
        "completiontokens",
        "outputtokens",
        "generatedtokens",
        "responsetokens",
        "numdecodetokens",
        "decodetokens",
        "outputlength",
        "outputlen",
        "osl",
        "numoutputtokens",
        "generationtokens",
    ),
    "blocks": ("hashids", "blockids", "blockhashes"),
    "session": ("sessionid", "session", "conversationid", "conversation", "chatid"),
    "turn": ("turn", "turnid", "round"),
}
_UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_UNIT_ENDING = re.compile(r"[_ (\[-](s|ms|us|ns)[)\]]?$", re.IGNORECASE | re.ASCII)
# Mooncake's releases have milliseconds under a name that says no unit.
_MILLISECONDS = frozenset({"timestamp", "inputlength", "outputlength", "hashids"})


@dataclass(frozen=True, slots=True)
class TraceColumns:
    """The columns of one trace.

    Attributes:
        names: For each of `FIELDS` the column's name, or None.
        unit_s: Seconds of one unit of time; None: nothing says which it is.
        guessed: Fields whose column was guessed.
    """

    names: tuple[str | None, ...]
    unit_s: float | None
    guessed: tuple[str, ...]


def parse_columns(text: str) -> dict[str, str]:
    """``arrival=ts:ms,prompt=n_in`` as a mapping.

    Raises:
        UsageError: not such a list, or a field that no request has.
    """
    found: dict[str, str] = {}
    for part in text.split(","):
        name, equals, column = (word.strip() for word in part.partition("="))
        if not equals or not column:
            raise UsageError(
                f"{shown(part)} names no column.", hint="Write arrival=ts:ms,prompt=n_in."
            )
        if name not in FIELDS:
            raise UsageError(
                f"Requests have no {shown(name)}.",
                hint=nearest(name, FIELDS) or f"They have {', '.join(FIELDS)}.",
            )
        found[name] = column
    return found


def choose(present: Sequence[str], wanted: Mapping[str, str], location: str) -> TraceColumns:
    """Picks columns among those ``present``.

    Raises:
        UsageError: a column that was asked for is not there.
        InputError: none of the columns can be the prompt or the output, or two can.
    """
    asked, unit = _unit_apart(wanted)
    names = tuple(
        _asked(asked[field], present, location)
        if field in asked
        else _guess(field, present, location)
        for field in FIELDS
    )
    unit = unit or _guess_unit(names[0], present)
    guessed = tuple(
        field
        for field, name in zip(FIELDS, names, strict=True)
        if name is not None and field not in asked
    )
    return TraceColumns(names, None if unit is None else _UNITS[unit], guessed)


def _unit_apart(wanted: Mapping[str, str]) -> tuple[dict[str, str], str | None]:
    asked = dict(wanted)
    column, colon, unit = asked.get("arrival", "").rpartition(":")
    if not colon or unit.lower() not in _UNITS:
        return asked, None
    asked["arrival"] = column
    return asked, unit.lower()


def _asked(column: str, present: Sequence[str], location: str) -> str:
    if column in present:
        return column
    raise UsageError(
        f"The trace has no column {shown(column)}.",
        hint=nearest(column, present) or f"It has {_listed(present)}.",
        location=location,
    )


def _guess(field: str, present: Sequence[str], location: str) -> str | None:
    found = [name for name in present if folded(name) in _NAMES[field]]
    if len(found) > 1:
        raise InputError(
            f"{_listed(found)} can each be the {field}.",
            hint=f"Say which: --trace-columns {field}={found[0]}.",
            location=location,
        )
    if not found and field in ("prompt", "output"):
        raise InputError(
            f"No column is called like the {field}'s tokens.",
            hint=f"It has {_listed(present)}; say which: --trace-columns {field}=NAME.",
            location=location,
        )
    return found[0] if found else None


def _guess_unit(arrival: str | None, present: Sequence[str]) -> str | None:
    ending = _UNIT_ENDING.search(arrival or "")
    if ending is not None:
        return ending[1].lower()
    return "ms" if {folded(name) for name in present} >= _MILLISECONDS else None


def folded(name: str) -> str:
    """A column's name without case, punctuation and unit of time.

    >>> folded("Request tokens"), folded("arrival_time_ms"), folded("hash_ids")
    ('requesttokens', 'arrivaltime', 'hashids')
    """
    bare = _UNIT_ENDING.sub("", name.strip())
    return re.sub(r"[^a-z0-9]", "", bare.lower())


def _listed(names: Sequence[str]) -> str:
    most = 12
    text = ", ".join(shown(name, 40) for name in names[:most])
    return text + (f" and {len(names) - most} more" if len(names) > most else "")
