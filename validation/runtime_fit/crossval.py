"""Five-fold cross-validation: constants and ranges come from folds that they are not judged on."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kvplan.engines.vllm.calibration import UNSHAPED_GIB, Interval
from kvplan.planning.validate.lacking import LEAST_GIB
from kvplan.units import GIB
from runtime_fit.conformal import Residual, Spread, intervals
from runtime_fit.estimate import BEFORE, Constants, fit
from runtime_fit.measured import widening
from runtime_fit.samples import Sample

FOLDS = 5
# Partitions whose residuals are pooled for a range: one alone moves it by how it falls.
REPEATS = 3
_APART = 1000


@dataclass(frozen=True)
class Judged:
    """A start, and what was predicted of its cache from other starts; GiB."""

    sample: Sample
    measured: float
    predicted: float
    low: float
    high: float

    @property
    def relative_error(self) -> float | None:
        """Above zero more was promised than there was; None where there was no cache."""
        return None if self.measured < LEAST_GIB else self.predicted / self.measured - 1


@dataclass(frozen=True)
class Found:
    """What validation finds: by the checks `end_to_end` and `overhead`."""

    end_to_end: tuple[Judged, ...]
    overhead: tuple[Judged, ...]


def cross_validate(samples: Sequence[Sample], seed: int) -> Found:
    """Every start that is judged or weighed, predicted without its fold."""
    found = [
        judge(held, fit(known), intervals(out_of_fold(known, seed), len(BEFORE)), known)
        for known, held in folds(samples, seed)
    ]
    return Found(
        tuple(each for fold in found for each in fold.end_to_end),
        tuple(each for fold in found for each in fold.overhead),
    )


def judge(
    held: Sequence[Sample],
    constants: Sequence[Constants],
    ranges: Sequence[Spread],
    known: Sequence[Sample],
) -> Found:
    """Some starts, predicted with constants and ranges of the ``known`` ones."""

    def one(sample: Sample, *, logged: bool) -> Judged:
        band = sample.band
        factor = widening(sample, known)
        return judged(sample, constants[band], ranges[band], factor, logged=logged)

    return Found(
        tuple(one(sample, logged=False) for sample in held if sample.judged),
        tuple(one(sample, logged=True) for sample in held if sample.weighed),
    )


def judged(
    sample: Sample, constants: Constants, spread: Spread, factor: float, *, logged: bool = False
) -> Judged:
    """A start with the range of its prediction, ``factor`` times as wide, as a plan has it."""
    predicted = sample.predicted(constants, logged=logged)
    fitted = sum(sample.values(constants).values())
    other = sample.other(constants)
    wide = Interval(spread.low * factor, spread.high * factor, spread.n)
    low, _ = wide.ends(round(fitted * GIB))
    _, high = wide.ends(round((fitted - other) * GIB))
    return Judged(
        sample=sample,
        measured=sample.cache,
        predicted=predicted,
        low=predicted - low / GIB,
        high=predicted + other + high / GIB,
    )


def out_of_fold(samples: Sequence[Sample], seed: int) -> list[Residual]:
    """What each judged start is off by, predicted from the other folds of `REPEATS` partitions."""
    counts = Counter(sample.campaign for sample in samples if sample.judged)
    found = []
    for repeat in range(REPEATS):
        for known, held in folds(samples, seed + _APART * repeat):
            constants = fit(known)
            for sample in held:
                if sample.judged:
                    weight = counts[sample.campaign] ** -0.5 / REPEATS
                    factor = widening(sample, known)
                    found.append(_residual(sample, constants[sample.band], weight, factor))
    return found


def _residual(sample: Sample, constants: Constants, weight: float, factor: float) -> Residual:
    fitted, other = sum(sample.values(constants).values()), sample.other(constants)
    off = sample.cache - sample.predicted(constants)
    if off > 0:  # between what the two samplers leave nothing is off
        off, fitted = max(0.0, off - other), fitted - other
    uncertain = (fitted + UNSHAPED_GIB) * factor
    return Residual(sample.id, sample.band, off / uncertain, weight)


def folds(samples: Sequence[Sample], seed: int) -> Iterator[tuple[list[Sample], list[Sample]]]:
    """The other samples and the fold's own. A group stays whole; sweep and rest are dealt apart."""
    fold_of: dict[str, int] = {}
    for sweep in (True, False):
        sizes = Counter(sample.group for sample in samples if sample.is_sweep == sweep)
        names = sorted(sizes)
        random.Random(seed).shuffle(names)  # noqa: S311 - cards are dealt, nothing is kept secret
        dealt = [0] * FOLDS
        for name in sorted(names, key=lambda each: -sizes[each]):
            fold_of[name] = dealt.index(min(dealt))
            dealt[fold_of[name]] += sizes[name]
    for fold in range(FOLDS):
        held = [sample for sample in samples if fold_of[sample.group] == fold]
        if held:
            yield [sample for sample in samples if fold_of[sample.group] != fold], held
