"""What is off by much, one start after the other, with its cause from `causes.yaml`.

A start whose source is no more than a number of an index is shown by its model, card and release.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from kvplan.measurement import Measurement
from page.markdown import header, percent, row
from page.tables import Pair

FILE = Path(__file__).parents[1] / "causes.yaml"
NUMBERED = "public-file:"
# Beyond this share of the card a miss has to have its cause named.
FAR = 0.05
NOT_ON_FILE = "no cause on file"
_KEYS = ("model", "gpu", "engine_version", "max_model_len")


def far_off(pairs: Sequence[Pair]) -> Iterator[str]:
    """The comparisons that miss by more than a twentieth of the card."""
    far = [
        (record, name, check)
        for record, checked in pairs
        for name, check in (
            *(("end to end", checked.end_to_end), ("overhead", checked.overhead)),
            ("weights", checked.weights),
        )
        if check and (check.share_of_card or 0) > FAR
    ]
    yield f"{len(far)} comparisons miss by more than {percent(FAR, 0)} of the card."
    if not far:
        return
    yield ""
    yield from header("start", "source", "check", "of the card", "cause", words=5)
    for record, name, check in sorted(far, key=lambda each: -(each[2].share_of_card or 0)):
        share = percent(check.share_of_card)
        yield row(named(record), source(record), name, share, cause(record, name))


def wrong_verdicts(pairs: Sequence[Pair]) -> Iterator[str]:
    """The verdicts that were not what happened."""
    wrong = [
        (record, checked.verdict)
        for record, checked in pairs
        if checked.verdict and not checked.verdict.agrees
    ]
    yield f"{len(wrong)} verdicts are wrong."
    if not wrong:
        return
    yield ""
    yield from header("start", "source", "predicted", "happened", "cause", words=5)
    for record, check in wrong:
        why = cause(record, "verdict")
        yield row(named(record), source(record), check.predicted, check.measured, why)


def named(record: Measurement) -> str:
    """What was started where."""
    count = f"{record.gpu_count} × " if (record.gpu_count or 1) > 1 else ""
    version = record.engine_version or "release not stated"
    return f"{record.model}, {count}{record.gpu}, {version}, {record.max_model_len} tokens"


def source(record: Measurement) -> str:
    """Where it was met with; those with no more than a number are counted only."""
    stated = record.source or NUMBERED
    return "counted only" if stated.startswith(NUMBERED) else stated


def cause(record: Measurement, check: str) -> str:
    """What is on file of the start."""
    return cause_of(known_by(record), check)


def known_by(record: Measurement) -> dict[str, Any]:
    """What a start is known by in the file."""
    fields = record.model_dump()
    return {key: fields[key] for key in _KEYS}


def cause_of(known: Mapping[str, Any], check: str) -> str:
    """What is on file of the start that is known by that."""
    for entry in _entries():
        if check in entry["checks"] and all(entry[key] == known[key] for key in _KEYS):
            return " ".join(entry["cause"].split())
    return NOT_ON_FILE


@cache
def _entries() -> tuple[Mapping[str, Any], ...]:
    return tuple(yaml.safe_load(FILE.read_text(encoding="utf-8")))
