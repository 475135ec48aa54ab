"""Records through all checks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kvplan.errors import KvplanError, NotModelledError, RefusedError
from kvplan.measurement import Measurement
from kvplan.planning.validate import geometry, memory, verdict
from kvplan.planning.validate.lacking import LackingError, extra
from kvplan.planning.validate.match import Finder, Matcher, Start, release_gap
from kvplan.planning.validate.summary import kind_of, summarise
from kvplan.validation import CHECK_NAMES, CheckedRecord, CheckName, Validation

_NOT_ASKED = "not among the checks that the record is for"


def validate(records: Iterable[Measurement], finder: Finder, *, strict: bool = False) -> Validation:
    """Compares every record with what kvplan says of it.

    Args:
        records: Measured starts.
        finder: Where models, GPUs and engines come from.
        strict: Leave out records that their author marks with a ``caution``.
    """
    matcher = Matcher(finder)
    checked = tuple(
        _checked(record, f"record {number}", matcher, strict=strict)
        for number, record in enumerate(records, 1)
    )
    return Validation(records=checked, summary=summarise(checked))


def _checked(record: Measurement, unnamed: str, matcher: Matcher, *, strict: bool) -> CheckedRecord:
    named = CheckedRecord(
        id=record.id or unnamed,
        source=record.source,
        model=record.model,
        gpu=record.gpu,
        engine=_engine(record),
        skipped=None,
    )
    try:
        _check_caution(record, strict=strict)
        start = matcher.match(record)
    except (LackingError, KvplanError) as lacking:
        reason = str(lacking)
        missing = dict.fromkeys(CHECK_NAMES, reason)
        return named.model_copy(update={"skipped": reason, "not_checked": missing})
    done, missing = _all_checks(start)
    return named.model_copy(
        update={
            **done,
            "not_checked": missing,
            "assumed": start.assumed,
            "skipped": None if done else _why_nothing(missing),
        }
    )


def _engine(record: Measurement) -> str | None:
    if record.engine is None or record.engine_version is None:
        return record.engine
    return f"{record.engine}=={record.engine_version}"


def _check_caution(record: Measurement, *, strict: bool) -> None:
    if strict and extra(record, "caution"):
        raise LackingError(f"the record has a caution: {str(extra(record, 'caution'))[:200]}")


def _all_checks(start: Start) -> tuple[dict[str, Any], dict[CheckName, str]]:
    """What could be checked, and why the rest could not."""
    done: dict[str, Any] = {}
    missing: dict[CheckName, str] = {}
    for name in CHECK_NAMES:
        try:
            done[name] = _one_check(name, start)
        except LackingError as lacking:
            missing[name] = str(lacking)
        except KvplanError as error:
            missing[name] = _why_not(start, error)
    return done, missing


def _why_not(start: Start, error: KvplanError) -> str:
    match error:
        case NotModelledError():
            return f"configuration not modelled: {error.message}"
        case RefusedError():
            unknown = release_gap(start)
            return unknown or f"refused by the engine's rules: {error.message}"
    return f"flags that can't be planned: {error.message}"


def _one_check(name: CheckName, start: Start) -> Any:
    modes = extra(start.record, "modes")
    if isinstance(modes, list) and name not in modes:
        raise LackingError(_NOT_ASKED)
    match name:
        case "geometry":
            return geometry.check(start)
        case "weights":
            return memory.weights(start)
        case "overhead":
            return memory.overhead(start)
        case "end_to_end":
            return memory.end_to_end(start)
        case "verdict":
            return verdict.check(start)


def _why_nothing(missing: Mapping[CheckName, str]) -> str:
    """Each kind of reason once; that a check was not asked for explains nothing."""
    kinds = {kind_of(reason): reason for reason in missing.values()}
    return "; ".join([reason for reason in kinds.values() if reason != _NOT_ASKED] or [_NOT_ASKED])
