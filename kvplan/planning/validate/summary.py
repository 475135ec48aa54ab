"""Many records → how far off kvplan is. A record that was skipped never counts as right."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from kvplan.validation import (
    CheckedRecord,
    CheckName,
    ErrorSummary,
    Summary,
    VerdictSummary,
    Worst,
)

_OPTIMISTIC = 0.05


@dataclass(frozen=True, slots=True)
class _Miss:
    """One record's error in one check; None is what the check does not know."""

    id: str
    relative: float | None
    of_card: float | None = None
    in_interval: bool | None = None
    reachable: bool | None = None


def summarise(records: Sequence[CheckedRecord]) -> Summary:
    """The summary of each check over all records."""
    return Summary(
        records=len(records),
        skipped=sum(record.skipped is not None for record in records),
        geometry=_errors(records, "geometry", _of_geometry(records)),
        weights=_errors(records, "weights", _of_weights(records)),
        overhead=_errors(records, "overhead", _of_kv(records, "overhead")),
        end_to_end=_errors(records, "end_to_end", _of_kv(records, "end_to_end")),
        verdict=_verdicts(records),
    )


def _of_geometry(records: Iterable[CheckedRecord]) -> list[_Miss]:
    return [
        _Miss(
            id=each.id,
            relative=each.geometry.relative_error,
            reachable=each.geometry.within_print_rounding,
        )
        for each in records
        if each.geometry
    ]


def _of_weights(records: Iterable[CheckedRecord]) -> list[_Miss]:
    return [
        _Miss(id=each.id, relative=each.weights.relative_error, of_card=each.weights.share_of_card)
        for each in records
        if each.weights
    ]


def _of_kv(
    records: Iterable[CheckedRecord], name: Literal["overhead", "end_to_end"]
) -> list[_Miss]:
    return [
        _Miss(
            id=record.id,
            relative=check.relative_error,
            of_card=check.share_of_card,
            in_interval=check.in_interval,
        )
        for record in records
        if (check := record.overhead if name == "overhead" else record.end_to_end)
    ]


def _errors(
    records: Sequence[CheckedRecord], name: CheckName, misses: Sequence[_Miss]
) -> ErrorSummary:
    signed = [(miss.relative, miss.id) for miss in misses if miss.relative is not None]
    relative = [error for error, _ in signed]
    sizes = sorted(abs(error) for error in relative)
    worst = max(signed, key=lambda pair: abs(pair[0]), default=None)
    return ErrorSummary(
        n=len(misses),
        skipped=_skipped(records, name),
        median_relative_error=statistics.median(sizes) if sizes else None,
        p90_relative_error=percentile(sizes, 90),
        worst=None if worst is None else Worst(id=worst[1], relative_error=worst[0]),
        within_2_percent=_share([size <= 0.02 for size in sizes]),
        within_5_percent=_share([size <= 0.05 for size in sizes]),
        within_10_percent=_share([size <= 0.10 for size in sizes]),
        optimistic_over_5_percent=_share([error > _OPTIMISTIC for error in relative]),
        p90_share_of_card=percentile(sorted(_known(miss.of_card for miss in misses)), 90),
        interval_coverage=_share(_held(miss.in_interval for miss in misses)),
        within_print_rounding=_share(_held(miss.reachable for miss in misses)),
    )


def percentile(ordered: Sequence[float], percent: int) -> float | None:
    """The smallest value that at least ``percent`` of all do not exceed; None of none.

    >>> percentile([1.0, 2.0, 3.0, 4.0], 90), percentile([1.0, 2.0], 50)
    (4.0, 1.0)
    """
    if not ordered:
        return None
    return ordered[-(-percent * len(ordered) // 100) - 1]


def _known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _held(values: Iterable[bool | None]) -> list[bool]:
    return [value for value in values if value is not None]


def _share(held: Sequence[bool]) -> float | None:
    return sum(held) / len(held) if held else None


def _skipped(records: Iterable[CheckedRecord], name: CheckName) -> dict[str, int]:
    """Records without the check, by kind of reason, most frequent first."""
    reasons = Counter(
        kind_of(record.not_checked[name]) for record in records if name in record.not_checked
    )
    return dict(reasons.most_common())


def kind_of(reason: str) -> str:
    """The kind of a reason, without its details.

    >>> kind_of("unknown GPU: No GPU is called 'Z9'.")
    'unknown GPU'
    """
    return reason.partition(": ")[0]


def _verdicts(records: Sequence[CheckedRecord]) -> VerdictSummary:
    verdicts = [record.verdict for record in records if record.verdict]
    refusals = [each for each in verdicts if each.measured == "refused"]
    starts = [each for each in verdicts if each.measured == "started"]
    return VerdictSummary(
        n=len(verdicts),
        skipped=_skipped(records, "verdict"),
        refusals=len(refusals),
        refusals_predicted=sum(each.agrees for each in refusals),
        starts=len(starts),
        starts_called_refused=sum(not each.agrees for each in starts),
    )
