"""Fits the constants of vLLM's runtime memory on measured starts; says how far they can be trusted.

    python validation/fit_runtime.py [RECORDS.jsonl] [--configs DIR] [--write] [--partitions N]
        [--folds FILE]

RECORDS has one engine start a line (default: the records in this folder). Prints the constants of
`kvplan/engines/vllm/calibration.yaml` with spread and number of starts, and what five-fold
cross-validation finds: constants, ranges and what counts as measured are fitted again without each
fold, whose groups are the sweep's models and the sources of all others; so no figure and no range
has seen what it is judged on. With --write the file takes the new figures. How a partition falls
moves the figures, so several are shown; --folds writes them down with a digest of the calibration
(`folds.json` here, which `accuracy.py` shows).
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from page import folds
from page.markdown import row
from runtime_fit import conformal, estimate
from runtime_fit.conformal import intervals
from runtime_fit.crossval import FOLDS, REPEATS, Found, Judged, cross_validate, judge, out_of_fold
from runtime_fit.estimate import fit
from runtime_fit.held_out import far_off
from runtime_fit.rewrite import FILE, rewritten
from runtime_fit.samples import Sample, read_samples
from runtime_fit.spread import Fitted, spreads

from kvplan.engines.vllm.calibration import bands
from kvplan.engines.vllm.coverage import STEP
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


def scores(starts: Sequence[Judged]) -> dict[str, float]:
    """The figures of some starts; errors are of the cache."""
    errors = [each.relative_error for each in starts if each.relative_error is not None]
    relative = sorted(map(abs, errors))
    of_card = sorted(abs(each.predicted - each.measured) / each.sample.total for each in starts)
    held = [between(each.low, each.measured, each.high) for each in starts]
    figures = {
        "median": statistics.median(relative),
        "p90": percentile(relative, 90),
        "optimistic": statistics.mean(error > _OPTIMISTIC for error in errors),
        "p90_of_card": percentile(of_card, 90),
        "in_range": statistics.mean(held),
        "half_width": statistics.median(
            (each.high - each.low) / 2 / each.sample.total for each in starts
        ),
    }
    return {name: round(value or 0.0, 6) for name, value in figures.items()}


def score_rows(title: str, found: Found) -> Iterator[dict[str, Any]]:
    """A row each of the sweep, the others and all; and one of the caches beside logged weights."""
    starts = found.end_to_end
    for name, members in (
        ("H100 sweep", [each for each in starts if each.sample.is_sweep]),
        ("all other starts", [each for each in starts if not each.sample.is_sweep]),
        ("all", starts),
        ("overhead", found.overhead),
    ):
        if members:
            yield {"fitted_on": title, "judged_on": name, "n": len(members), **scores(members)}


def partition_rows(found: Found, seed: int) -> list[dict[str, Any]]:
    """The rows of one partition into folds."""
    return list(score_rows(f"other folds, partition {seed}", found))


def settings() -> dict[str, float]:
    """What was chosen and not fitted."""
    return {
        "level": conformal.LEVEL,
        "scale_shrink": conformal.SHRINK,
        "thin": conformal.THIN,
        "pull": estimate.PULL,
        "shrink": estimate.SHRINK,
        "too_little": estimate.TOO_LITTLE,
        "widening_step": STEP,
        "folds": FOLDS,
        "repeats": REPEATS,
    }


def fitted(samples: Sequence[Sample], *, write: bool) -> Iterator[str]:
    """The constants; with ``write`` the calibration takes them."""
    constants = fit(samples)
    spread = spreads(samples, constants)
    ranges = intervals(out_of_fold(samples, 0), len(constants))
    if write:
        text = FILE.read_text(encoding="utf-8")
        FILE.write_text(rewritten(text, samples, spread, ranges), encoding="utf-8")
    yield from constants_table(spread)
    yield row("interval", *(f"−{each.low:.2f} to +{each.high:.2f} (n {each.n})" for each in ranges))


def validated(samples: Sequence[Sample], partitions: Sequence[Found]) -> list[dict[str, Any]]:
    """All rows: the same starts, and each partition."""
    constants = fit(samples)
    ranges = intervals(out_of_fold(samples, 0), len(constants))
    rows = list(score_rows("the same starts", judge(samples, constants, ranges, samples)))
    for seed, found in enumerate(partitions):
        rows += partition_rows(found, seed)
    return rows


def main(arguments: list[str]) -> int:
    """Runs the fit."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("records", nargs="?", default=str(RECORDS))
    parser.add_argument("--configs", type=Path)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--partitions", type=int, default=5)
    parser.add_argument("--folds", type=Path)
    given = parser.parse_args(arguments)
    try:
        records = tuple(read_measurements(given.records))
        samples = read_samples(records, given.configs)
    except KvplanError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    judged_starts = sum(sample.judged for sample in samples)
    print(f"{len(samples)} starts, {judged_starts} of them judged.\n")
    print("\n".join(fitted(samples, write=given.write)))
    partitions = [cross_validate(samples, seed) for seed in range(given.partitions)]
    rows = validated(samples, partitions)
    print()
    print("\n".join(folds.table(rows)))
    if given.folds is not None:
        found = {
            "starts": len(samples),
            "judged": judged_starts,
            "calibration": folds.fingerprint(),
            "settings": settings(),
            "rows": rows,
            "far_off": list(far_off(partitions, {each.id or "": each for each in records})),
        }
        given.folds.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
