"""How far off each check is: over all, by group of sources, release and kind of model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from kvplan.measurement import Measurement
from kvplan.planning.validate.summary import summarise
from kvplan.validation import CheckedRecord, ErrorSummary, Summary
from page.markdown import header, percent, row

# One campaign on one machine; everything else is starts that people met with.
SWEEP = "llm-d-incubation/llm-d-planner"
# The columns that `figures` fills.
FIGURES = (
    *("n", "median", "p90", "within 2 %", "5 %", "10 %", ">5 % too much"),
    *("p90 of the card", "in range"),
)
Pair = tuple[Measurement, CheckedRecord]


def group(record: Measurement) -> str:
    """The group of sources that a record belongs to."""
    return "H100 sweep" if (record.source or "").startswith(SWEEP) else "all other starts"


def extra(record: Measurement, name: str) -> str:
    """A field of the record's own, as a row's title."""
    return str((record.model_extra or {}).get(name) or "not stated").replace("_", " ")


def release(record: Measurement) -> str:
    """The band of releases that its author gave it."""
    return extra(record, "version_band")


def kind(record: Measurement) -> str:
    """The kind of architecture that its author gave it."""
    return extra(record, "architecture_kind")


def overall(summary: Summary) -> Iterator[str]:
    """One row a check."""
    yield from header("check", *FIGURES, "reachable")
    for name, check in (
        ("geometry", summary.geometry),
        ("weights", summary.weights),
        ("overhead", summary.overhead),
        ("end to end", summary.end_to_end),
    ):
        yield row(name, *figures(check), percent(check.within_print_rounding))


def figures(check: ErrorSummary) -> tuple[str, ...]:
    """The cells that every table of errors has."""
    return (
        str(check.n),
        percent(check.median_relative_error, 2),
        percent(check.p90_relative_error, 2),
        percent(check.within_2_percent),
        percent(check.within_5_percent),
        percent(check.within_10_percent),
        percent(check.optimistic_over_5_percent),
        percent(check.p90_share_of_card),
        percent(check.interval_coverage),
    )


def verdicts(summary: Summary) -> str:
    """The verdict in a sentence."""
    check = summary.verdict
    return (
        f"Verdict, {check.n} starts judged: {check.refusals_predicted} of {check.refusals} refusals"
        f" predicted, {check.starts_called_refused} of {check.starts} that started called refused."
    )


def by_group(pairs: Sequence[Pair]) -> Iterator[str]:
    """The cache from flags alone, by group of sources, release and kind of model."""
    yield "The cache from model, GPU and flags alone (`end_to_end`):"
    yield ""
    yield from header("starts", *FIGURES)
    for title, key in (("", group), ("release ", release), ("", kind)):
        for name, members in grouped(pairs, key):
            check = summarise([checked for _, checked in members]).end_to_end
            if check.n:
                yield row(title + name, *figures(check))


def crossed(pairs: Sequence[Pair]) -> Iterator[str]:
    """The same, by all three at once; most cells hold few starts."""
    yield "The same by release, kind of model and group of sources at once. Few starts a row: they"
    yield "say where anything was measured at all, more than how far off a next one will be."
    yield ""
    titles = ("n", "median", "worst", "p90 of the card", "in range")
    yield from header("release", "architecture", "starts", *titles, words=3)
    for name, members in grouped(
        pairs, lambda each: "\t".join((release(each), kind(each), group(each)))
    ):
        check = summarise([checked for _, checked in members]).end_to_end
        if check.n:
            yield row(
                *name.split("\t"),
                str(check.n),
                percent(check.median_relative_error, 2),
                percent(check.worst.relative_error if check.worst else None),
                percent(check.p90_share_of_card),
                percent(check.interval_coverage),
            )


def grouped(
    pairs: Iterable[Pair], key: Callable[[Measurement], str]
) -> Iterator[tuple[str, list[Pair]]]:
    """The pairs by a title, titles in order."""
    groups: dict[str, list[Pair]] = {}
    for record, checked in pairs:
        groups.setdefault(key(record), []).append((record, checked))
    yield from sorted(groups.items())


def reachable(pairs: Sequence[Pair]) -> Iterator[str]:
    """How many logs are exactly what their printed bytes give."""
    yield "Blocks, tokens and concurrency from the printed bytes (`geometry`):"
    yield ""
    yield from header("release", "n", "reachable")
    for name, members in grouped(pairs, release):
        checks = [checked.geometry for _, checked in members if checked.geometry]
        if checks:
            yield row(name, str(len(checks)), str(sum(c.within_print_rounding for c in checks)))


def unreachable(pairs: Sequence[Pair]) -> Iterator[str]:
    """Why the others are not, counted by cause."""
    causes = Counter(
        checked.geometry.reachable_with or "no flag that the record leaves out explains it"
        for _, checked in pairs
        if checked.geometry and not checked.geometry.within_print_rounding
    )
    yield "Not reachable, and the first flag that makes it so where the record leaves it out:"
    yield ""
    yield from header("flag", "starts")
    for cause, count in causes.most_common():
        yield row(cause, str(count))


def skipped(summary: Summary) -> Iterator[str]:
    """Why records were not compared."""
    checks = (
        summary.geometry,
        summary.weights,
        summary.overhead,
        summary.end_to_end,
        summary.verdict,
    )
    yield from header("skipped because", "geometry", "weights", "overhead", "end to end", "verdict")
    reasons = dict.fromkeys(reason for check in checks for reason in check.skipped)
    for reason in reasons:
        yield row(reason, *(str(check.skipped.get(reason, 0)) for check in checks))
