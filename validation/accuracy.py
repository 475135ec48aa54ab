"""How far off kvplan is: writes the tables of README.md.

    python validation/accuracy.py [RECORDS.jsonl] [--configs DIR] [--strict] [--write FILE]

RECORDS has one engine start a line (`kvplan validate` says what it may hold); without it the starts
in `records/vllm.jsonl` beside this script are taken. `version_band`, `architecture_kind` and
`source` decide on the rows of the tables. Prints Markdown; with --write it takes the place of what
stands between the markers in FILE, and so do the sentence on the carried records and what
`folds.json` says of cross-validation, where FILE has markers for them.

Starts whose source is no more than a number of an index are shown without it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from page import causes, folds, tables
from page.markdown import percent

from kvplan import api
from kvplan.errors import KvplanError
from kvplan.measurement import Measurement
from kvplan.sources.measurements import read_measurements
from kvplan.validation import Validation

RECORDS = Path(__file__).parent / "records" / "vllm.jsonl"
ACCURACY = "accuracy"


def section(validation: Validation, records: Sequence[Measurement]) -> Iterator[str]:
    """The lines of the section."""
    pairs = list(zip(records, validation.records, strict=True))
    summary = validation.summary
    yield f"{summary.records} starts, {summary.skipped} of them skipped by every check."
    for part in (
        tables.overall(summary),
        (tables.verdicts(summary),),
        tables.by_group(pairs),
        tables.crossed(pairs),
        tables.reachable(pairs),
        tables.unreachable(pairs),
        causes.far_off(pairs),
        causes.wrong_verdicts(pairs),
        tables.skipped(summary),
    ):
        yield ""
        yield from part


def carried() -> Iterator[str]:
    """One sentence on the records beside this script."""
    records = tuple(read_measurements(str(RECORDS)))
    summary = api.validate(records, offline=True).summary
    end, verdict = summary.end_to_end, summary.verdict
    yield f"On the {len(records)} that are carried, {end.n} judged from flags alone:"
    yield f"median {percent(end.median_relative_error, 2)},"
    yield f"90th percentile {percent(end.p90_relative_error, 2)},"
    yield f"more than 5 % too much in {percent(end.optimistic_over_5_percent)},"
    yield f"{percent(end.interval_coverage)} within the range;"
    yield f"{verdict.refusals_predicted} of {verdict.refusals} refusals predicted,"
    yield f"{verdict.starts_called_refused} of {verdict.starts} that started called refused."


def validated() -> Iterator[str]:
    """What `folds.json` has."""
    found = folds.read()
    yield from folds.table(found["rows"])
    yield ""
    yield f"Held out, {len(found['far_off'])} comparisons miss by more than 5 % of the card:"
    yield ""
    yield from folds.far_off(found["far_off"])


# Further sections, which a page may have.
OTHERS: Mapping[str, Callable[[], Iterator[str]]] = {"carried": carried, "folds": validated}


def put(text: str, name: str, lines: str, path: Path) -> str:
    """The page with the lines between the markers of that name.

    Raises:
        SystemExit: the page has not both.
    """
    first, last = (f"<!-- {name}: {word} -->" for word in ("begin", "end"))
    before, begin, rest = text.partition(first)
    _, end, after = rest.partition(last)
    if not begin or not end:
        raise SystemExit(f"{path} has not the markers {first} and {last}")
    return f"{before}{first}\n\n{lines}\n{last}{after}"


def rewritten(path: Path, accuracy: str) -> str:
    """The page with all sections that it has markers for."""
    text = put(path.read_text(encoding="utf-8"), ACCURACY, accuracy, path)
    for name, lines in OTHERS.items():
        if f"<!-- {name}: begin -->" in text:
            text = put(text, name, "\n".join(lines()) + "\n", path)
    return text


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
        given.write.write_text(rewritten(given.write, text), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
