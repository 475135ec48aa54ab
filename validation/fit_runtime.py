"""Fits the constants of vLLM's runtime memory on measured starts; says how far they can be trusted.

    python validation/fit_runtime.py [RECORDS.jsonl] [--configs DIR] [--write] [--partitions N]

RECORDS has one engine start a line (default: the records in this folder). Prints the constants of
`kvplan/engines/vllm/calibration.yaml` with spread and number of starts, and what five-fold
cross-validation finds: constants and ranges are fitted again without each fold, whose groups are
models inside the H100 sweep and sources elsewhere, nested so that no range has seen what it is
judged on. With --write the file takes the new figures. How a partition falls moves the figures, so
several are shown.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from runtime_fit.conformal import intervals
from runtime_fit.crossval import Judged, cross_validate, judged, out_of_fold
from runtime_fit.estimate import fit
from runtime_fit.rewrite import FILE, rewritten
from runtime_fit.samples import Sample, read_samples
from runtime_fit.spread import Fitted, spreads

from kvplan.engines.vllm.calibration import bands
from kvplan.errors import KvplanError
from kvplan.planning.validate.printed import between
from kvplan.planning.validate.summary import percentile
from kvplan.sources.measurements import read_measurements

RECORDS = Path(__file__).parent / "records" / "vllm.jsonl"
_OPTIMISTIC = 0.05


def constants_table(found: Sequence[dict[str, Fitted]]) -> Iterator[str]:
    """One row a constant, one column a band."""
    titles = [f"{band.engine} {'.'.join(map(str, band.since))}" for band in bands()]
    yield row("constant", *titles)
    yield row("---", *("---:" for _ in titles))
    for name in found[0]:
        cells = (
            f"{c.value:g} ({c.low:.3g}–{c.high:.3g}, n {c.n})" for c in (b[name] for b in found)
        )
        yield row(name, *cells)


def scores(title: str, starts: Sequence[Judged]) -> str:
    """A row of figures; errors are of the cache."""
    relative = sorted(abs(each.relative_error) for each in starts)
    of_card = sorted(abs(each.predicted - each.measured) / each.sample.total for each in starts)
    optimistic = [each.relative_error > _OPTIMISTIC for each in starts]
    held = [between(each.low, each.measured, each.high) for each in starts]
    half = statistics.median((each.high - each.low) / 2 / each.sample.total for each in starts)
    return row(
        title,
        str(len(starts)),
        percent(statistics.median(relative)),
        percent(percentile(relative, 90)),
        percent(statistics.mean(optimistic)),
        percent(percentile(of_card, 90)),
        percent(statistics.mean(held)),
        percent(half),
    )


def score_table(partitions: Sequence[tuple[str, Sequence[Judged]]]) -> Iterator[str]:
    """Three rows a partition: the sweep, the others, all."""
    yield row(
        *("fitted on, judged on", "n", "median", "p90", ">5 % too much"),
        *("p90 of the card", "in range", "median half-width of the card"),
    )
    yield row("---", *("---:" for _ in range(7)))
    for title, starts in partitions:
        for name, members in (
            ("H100 sweep", [each for each in starts if each.sample.is_sweep]),
            ("all other starts", [each for each in starts if not each.sample.is_sweep]),
            ("all", starts),
        ):
            if members:
                yield scores(f"{title}, {name}", members)


def row(*cells: str) -> str:
    """One line of a table."""
    return "| " + " | ".join(cells) + " |"


def percent(share: float | None) -> str:
    """A share in percent; a dash where there is none."""
    return "-" if share is None else f"{100 * share:.2f} %"


def report(samples: Sequence[Sample], partitions: int, *, write: bool) -> Iterator[str]:
    """The tables; with ``write`` the file takes the figures."""
    constants = fit(samples)
    spread = spreads(samples, constants)
    ranges = intervals(out_of_fold(samples, 0), len(constants))
    if write:
        text = FILE.read_text(encoding="utf-8")
        FILE.write_text(rewritten(text, samples, spread, ranges), encoding="utf-8")
    yield f"{len(samples)} starts, {sum(sample.judged for sample in samples)} of them judged."
    yield ""
    yield from constants_table(spread)
    yield row("interval", *(f"−{each.low:.2f} to +{each.high:.2f} (n {each.n})" for each in ranges))
    yield ""
    inside = [judged(s, constants[s.band], ranges[s.band]) for s in samples if s.judged]
    folds = [
        (f"other folds, partition {seed}", list(cross_validate(samples, seed)))
        for seed in range(partitions)
    ]
    yield from score_table([("the same starts", inside), *folds])


def main(arguments: list[str]) -> int:
    """Runs the fit."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("records", nargs="?", default=str(RECORDS))
    parser.add_argument("--configs", type=Path)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--partitions", type=int, default=5)
    given = parser.parse_args(arguments)
    try:
        samples = read_samples(read_measurements(given.records), given.configs)
    except KvplanError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    for line in report(samples, given.partitions, write=given.write):
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
