"""Which starts miss by much when they are held out, and in how many partitions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from page.causes import FAR, known_by, named, source

from kvplan.measurement import Measurement
from runtime_fit.crossval import Found, Judged

_CHECKS = ("end to end", "overhead")


def far_off(
    partitions: Sequence[Found], records: Mapping[str, Measurement]
) -> Iterator[dict[str, Any]]:
    """The starts that miss by more than a twentieth of the card in a partition, worst first.

    Args:
        partitions: What was found in each.
        records: The starts by id.
    """
    shares: dict[tuple[str, str], list[float]] = {}
    for found in partitions:
        for check, judged in zip(_CHECKS, (found.end_to_end, found.overhead), strict=True):
            for name, share in _far(judged):
                shares.setdefault((name, check), []).append(share)
    for (name, check), found_in in sorted(shares.items(), key=lambda item: -max(item[1])):
        record = records[name]
        yield {
            "start": named(record),
            "source": source(record),
            "check": check,
            "partitions": len(found_in),
            "of_card": [round(min(found_in), 4), round(max(found_in), 4)],
            "known_by": known_by(record),
        }


def _far(starts: Iterable[Judged]) -> Iterator[tuple[str, float]]:
    for each in starts:
        share = abs(each.predicted - each.measured) / each.sample.total
        if share > FAR:
            yield each.sample.id, share
