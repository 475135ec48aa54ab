"""How far starts lie apart: for each constant the values that would make single starts come out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kvplan.engines.vllm.calibration import CONSTANTS
from runtime_fit.estimate import BEFORE, GRIDS, SINCE, Constants, tells
from runtime_fit.samples import Sample

# What no start tells apart from the rest: between what it may lie.
_UNTOLD: Mapping[str, tuple[float, float]] = {"hidden_bytes": (2, 6), "fixed_gib": (0, 0.15)}
# What is not searched: no more than this is said of it.
_MOST: Mapping[str, float] = {"logits_bytes": 45, "step_share": 1.5}
# What counting a step without memory may differ by.
_COUNTED = 0.1
# A start says something of a constant that makes at least this share of a part that was logged.
_LEAST_SHARE = 0.4


@dataclass(frozen=True)
class Fitted:
    """A constant with its spread: nine in ten of the n starts that tell of it lie within."""

    value: float
    low: float
    high: float
    n: int


def spreads(samples: Sequence[Sample], bands: Sequence[Constants]) -> list[dict[str, Fitted]]:
    """All constants by band. One that no start tells of has the spread of the band before."""
    found: dict[int, dict[str, Fitted]] = {}
    for band, before in BEFORE.items():
        members = [sample for sample in samples if sample.band == band]
        found[band] = {
            name: _fitted(
                name, band, bands[band], members, None if before is None else found[before][name]
            )
            for name in CONSTANTS
        }
    return [found[band] for band in sorted(found)]


def _fitted(
    name: str, band: int, constants: Constants, members: Sequence[Sample], before: Fitted | None
) -> Fitted:
    value = constants[name]
    if band < SINCE.get(name, 0):
        return Fitted(value, value, value, 0)
    if name in _UNTOLD:
        low, high = _UNTOLD[name]
        return Fitted(value, low, high, 0)
    implied = sorted(
        each
        for sample in members
        if tells(sample, name)
        for each in _implied(sample, name, constants)
    )
    if implied:
        cut = round(len(implied) / 20)
        kept = implied[cut : len(implied) - cut]
        return Fitted(value, min(value, kept[0]), max(value, kept[-1]), len(implied))
    low, high = (before.low, before.high) if before else _widest(name, value)
    return Fitted(value, min(value, low), max(value, high), 0)


def _widest(name: str, value: float) -> tuple[float, float]:
    """Between what a constant lies that no start tells of and no band before."""
    if name in GRIDS:
        return GRIDS[name][0], GRIDS[name][-1]
    return (1 - _COUNTED) * value, (1 + _COUNTED) * value


def _most(name: str) -> float:
    return 2 * GRIDS[name][-1] if name in GRIDS else _MOST[name]


def _implied(sample: Sample, name: str, constants: Constants) -> Iterator[float]:
    """The value with which a logged part comes out; none where the constant makes little of it."""
    value = constants[name]
    if name == "graph_gib" and sample.graphs is not None:
        yield sample.graphs / sample.captures
        return
    logged = _logged(sample, name)
    if logged is None:
        return
    predicted = _part(sample, name, constants)
    step = (value or GRIDS[name][1]) / 100
    slope = (_part(sample, name, {**constants, name: value + step}) - predicted) / step
    if slope > 0 and slope * value >= _LEAST_SHARE * max(predicted, logged):
        yield min(_most(name), max(0.0, value + (logged - predicted) / slope))


def _lines(sample: Sample, name: str) -> tuple[str, ...] | None:
    """The ledger lines of the narrowest logged part that the constant belongs to; None: all."""
    if name.startswith("non_torch") and sample.outside_torch is not None:
        return ("non_torch",)
    peak = not name.startswith(("non_torch", "graph"))
    return sample.peak_lines if peak and sample.activation is not None else None


def _logged(sample: Sample, name: str) -> float | None:
    lines = _lines(sample, name)
    if lines is None:
        return sample.rest
    return sample.activation if lines is sample.peak_lines else sample.outside_torch


def _part(sample: Sample, name: str, constants: Constants) -> float:
    values, lines = sample.values(constants), _lines(sample, name)
    return sum(value for line, value in values.items() if lines is None or line in lines)
