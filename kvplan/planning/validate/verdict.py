"""Would it have started? From the flags alone; where they do not suffice, from the logged bytes."""

from __future__ import annotations

import re

from kvplan.engines.base import Setup
from kvplan.errors import EngineRefusesError, NotModelledError
from kvplan.measurement import Measurement
from kvplan.planning.validate.geometry import logged_bytes
from kvplan.planning.validate.lacking import LEAST_GIB, LackingError, need
from kvplan.planning.validate.match import Start, release_gap
from kvplan.units import GIB
from kvplan.validation import Outcome, VerdictCheck

# What came later (``started; out of memory at the first long prompt``) is no part of it.
_STARTED = re.compile(r"started\b")
# What an engine says before it has served anything: too little memory, or a setting it rejects.
_REFUSED = re.compile(
    r"refused\b|does_not_fit\b"
    r"|(error: )?(max_length_too_large|max_seq_len_too_large|no_memory_for_cache)"
    r"|(error: )?configuration_refused\b"
)


def check(start: Start) -> VerdictCheck:
    """Predicted and real outcome.

    Raises:
        LackingError: the record states neither enough flags nor bytes, or its outcome is neither.
        KvplanError: kvplan does not model the configuration.
    """
    measured = _outcome(start.record)
    try:
        predicted = _by_flags(start)
    except (LackingError, NotModelledError) as reason:
        by_bytes = _by_bytes(start)
        if by_bytes is None:
            raise reason from None
        return VerdictCheck(predicted=by_bytes, measured=measured, basis="logged_kv")
    return VerdictCheck(predicted=predicted, measured=measured, basis="flags")


def _by_flags(start: Start) -> Outcome:
    if not start.gpu_stated:
        raise LackingError("gpu is not stated")
    need(start.record.engine_version, "engine_version")
    return _predicted(start, start.memory(start.loaded()))


def _by_bytes(start: Start) -> Outcome | None:
    """From the logged cache; None where nothing was logged of it."""
    try:
        kv_bytes = logged_bytes(start)
    except LackingError:
        return None
    if kv_bytes < LEAST_GIB * GIB:
        return "refused"
    return _predicted(start, start.pages(start.model, kv_bytes))


def _predicted(start: Start, setup: Setup) -> Outcome:
    try:
        prepared = start.engine.prepare(setup)
    except EngineRefusesError:
        unknown = release_gap(start)
        if unknown:
            raise LackingError(unknown) from None
        return "refused"
    return "started" if prepared.figures(start.context).starts else "refused"


def _outcome(record: Measurement) -> Outcome:
    stated = need(record.outcome, "outcome")
    if _STARTED.match(stated):
        return "started"
    if _REFUSED.match(stated):
        return "refused"
    raise LackingError("outcome is neither a start nor a refusal: " + stated[:80])
