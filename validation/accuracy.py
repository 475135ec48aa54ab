"""How far off kvplan is, by release, kind of model and group of sources: the tables of README.md.

    python validation/accuracy.py [RECORDS.jsonl] [--configs DIR] [--strict] [--write FILE]

RECORDS has one engine start a line (`kvplan validate` says what it may hold); without it the starts
in `records/vllm.jsonl` beside this script are taken. `version_band`,
`architecture_kind` and `source` decide on the rows of the tables. Prints Markdown; with --write it
takes the place of what stands between the two markers in FILE.

Records whose source is no more than a number of an index are counted, never shown one by one.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from kvplan import api
from kvplan.errors import KvplanError
from kvplan.measurement import Measurement
from kvplan.planning.validate.summary import summarise
from kvplan.sources.measurements import read_measurements
from kvplan.validation import CheckedRecord, ErrorSummary, Summary, Validation

RECORDS = Path(__file__).parent / "records" / "vllm.jsonl"
BEGIN, END = "<!-- accuracy: begin -->", "<!-- accuracy: end -->"
# One campaign on one machine; everything else is starts that people met with.
SWEEP = "llm-d-incubation/llm-d-planner"
NUMBERED = "public-file:"
# Beyond this share of the card a miss has to have its cause named.
FAR = 0.05
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


def section(validation: Validation, records: Sequence[Measurement]) -> Iterator[str]:
    """The lines of the section."""
    pairs = list(zip(records, validation.records, strict=True))
    summary = validation.summary
    yield f"{summary.records} starts, {summary.skipped} of them skipped by every check."
    yield ""
    yield from overall(summary)
    yield ""
    yield verdicts(summary)
    yield ""
    yield from by_group(pairs)
    yield ""
    yield from reachable(pairs)
    yield ""
    yield from unreachable(pairs)
    yield ""
    yield from far_off(pairs)
    yield ""
    yield from skipped(summary)


def overall(summary: Summary) -> Iterator[str]:
    """One row a check."""
    yield from header(
        "check",
        "n",
        "median",
        "p90",
        "within 2 %",
        "5 %",
        "10 %",
        ">5 % too much",
        "p90 of the card",
        "in range",
        "reachable",
    )
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
    yield from header(
        "starts",
        "n",
        "median",
        "p90",
        "within 2 %",
        "5 %",
        "10 %",
        ">5 % too much",
        "p90 of the card",
        "in range",
    )
    for title, key in (
        ("", group),
        ("release ", lambda record: extra(record, "version_band")),
        ("", lambda record: extra(record, "architecture_kind")),
    ):
        for name, members in grouped(pairs, key):
            check = summarise([checked for _, checked in members]).end_to_end
            if check.n:
                yield row(title + name, *figures(check))


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
    for name, members in grouped(pairs, lambda record: extra(record, "version_band")):
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


def far_off(pairs: Sequence[Pair]) -> Iterator[str]:
    """The records that miss by more than a twentieth of the card."""
    far = [
        (record, name, check)
        for record, checked in pairs
        for name, check in (("end to end", checked.end_to_end), ("overhead", checked.overhead))
        if check and check.share_of_card > FAR
    ]
    shown = [each for each in far if not (each[0].source or NUMBERED).startswith(NUMBERED)]
    yield (
        f"{len(far)} comparisons miss by more than {percent(FAR, 0)} of the card;"
        f" {len(far) - len(shown)} of them rest on sources that are counted only."
    )
    if not shown:
        return
    yield ""
    yield row("source", "model, release", "check", "of the card", "cause")
    yield row("---", "---", "---", "---:", "---")
    for record, name, check in sorted(shown, key=lambda each: -each[2].share_of_card):
        release = f"{record.model}, {record.engine_version}"
        yield row(str(record.source), release, name, percent(check.share_of_card), check.cause)


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


def header(*titles: str) -> Iterator[str]:
    """A table's two first lines: words to the left, figures to the right."""
    yield row(*titles)
    yield row("---", *("---:" for _ in titles[1:]))


def row(*cells: str) -> str:
    """One line of a table."""
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def percent(share: float | None, digits: int = 1) -> str:
    """A share in percent; a dash where there is none."""
    return "-" if share is None else f"{100 * share:.{digits}f} %"


def put(text: str, path: Path) -> None:
    """Writes the section between the markers of a file.

    Raises:
        SystemExit: the file has not both.
    """
    before, begin, rest = path.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{path} has not the markers {BEGIN} and {END}")
    path.write_text(f"{before}{BEGIN}\n\n{text}\n{END}{after}", encoding="utf-8")


def main(arguments: list[str]) -> int:
    """Runs the comparison."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("records", nargs="?", default=str(RECORDS))
    parser.add_argument("--configs", type=Path)
    parser.add_argument("--strict", action="store_true")
    parser.add_argument("--write", type=Path)
    given = parser.parse_args(arguments)
    try:
        records = tuple(read_measurements(given.records))
        validation = api.validate(records, offline=True, configs=given.configs, strict=given.strict)
    except KvplanError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    text = "\n".join(section(validation, records)) + "\n"
    if given.write is None:
        sys.stdout.write(text)
    else:
        put(text, given.write)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
