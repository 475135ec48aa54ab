"""Constants of each band from samples: least absolute error over grids, drawn to the band before.

Some constants are given: what sampling and a layer's step hold follows from the engine's source,
and the starts agree (`spread` shows how far). For the others every sample gives up to four errors,
all as shares of its card: of the activation peak and of
memory past torch's allocator where the log states them, of the graphs, and of all fitted memory
together. One constant after the other takes the value of its grid with the least weighted sum,
three rounds in all. A sample whose group has n of them weighs 1/√n: many starts of one author are
not as many machines. What few samples tell of stays near the band before: each step of the grid
away from it costs `PULL`, and of the steps that remain w/(w + `SHRINK`) are taken, w being the
weight of the samples.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from runtime_fit.samples import Sample

Constants = Mapping[str, float]

# What is not fitted. `logits_bytes`, of the older model runner: logits in 16 bits and in float32,
# and then, before 0.17, values and indices sorted (18 bytes in all; the sort's own buffers make it
# 37 to 38 by every log that states the peak): vllm/v1/sample/ops/topk_topp_sampler.py,
# apply_top_k_top_p. From 0.17 on probabilities and noise instead of the sort, 2 + 4 + 4 + 4.
# `step_share`: the step is counted by its tensors, and counting it without memory finds the same.
# `hidden_bytes`: hidden states and residual in 16 bits. `fixed_gib`: no start tells it apart.
_SORTED, _DRAWN = {"logits_bytes": 38.0}, {"logits_bytes": 14.0}
GIVEN: Constants = {"hidden_bytes": 4, "step_share": 1, "fixed_gib": 0.03}
GIVEN_BY_BAND: tuple[Constants, ...] = (_SORTED, _SORTED, _DRAWN, _DRAWN, _DRAWN)
# Where the search begins, and what a constant is that no start of any band tells of.
START: Constants = {
    "multimodal_gib": 0.1,
    "latent_gib": 0.3,
    "compile_gib": 0,
    "non_torch_gib": 0.2,
    "non_torch_tp_gib": 1.5,
    "non_torch_tp_small_gib": 0.5,
    # A kind of device without a start takes what the others take at most.
    "non_torch_intel_gib": 2,
    "graph_gib": 0.006,
}
# The values that a constant may take.
GRIDS: Mapping[str, tuple[float, ...]] = {
    "multimodal_gib": (0, 0.05, 0.1, 0.2, 0.4, 0.8, 1.5),
    "latent_gib": (0, 0.1, 0.2, 0.3, 0.5, 1, 2, 5),
    "compile_gib": (0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.55, 0.7, 0.9, 1.2),
    "non_torch_gib": (0.02, 0.05, 0.08, 0.1, 0.13, 0.16, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.75, 1),
    "non_torch_tp_gib": (0.3, 0.5, 0.65, 0.8, 1, 1.25, 1.5, 1.8, 2.1, 2.4, 3, 4, 5, 6, 7),
    "non_torch_tp_small_gib": (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.3, 1.7, 2.5),
    "non_torch_intel_gib": (0.1, 0.3, 0.5, 0.7, 1, 1.3, 1.5, 1.7, 2),
    "graph_gib": (
        *(0.0002, 0.0005, 0.001, 0.002, 0.003, 0.004, 0.005, 0.006, 0.007, 0.0083, 0.0093),
        *(0.011, 0.0125, 0.015, 0.02, 0.03),
    ),
}
PULL = 0.0003
SHRINK = 0.5
# Memory that was not planned for stops a start; what was planned for and is free does not.
TOO_LITTLE = 1.5
_ROUNDS = 3
# Constants that only bands from this one on have a part for: what compiling holds shows in profile
# runs from 0.20 on.
SINCE: Mapping[str, int] = {"compile_gib": 3}
# The best known of the old bands first, then the one before it, then on to the newest: band -> the
# band that it is drawn to.
BEFORE: Mapping[int, int | None] = {1: None, 0: 1, 2: 1, 3: 2, 4: 3}


def fit(samples: Sequence[Sample]) -> list[Constants]:
    """Constants by band."""
    fitted: dict[int, Constants] = {}
    for band, before in BEFORE.items():
        members = [sample for sample in samples if sample.band == band]
        drawn_to = START if before is None else fitted[before]
        fitted[band] = _fit_band(members, drawn_to, {**GIVEN, **GIVEN_BY_BAND[band]})
    return [fitted[band] for band in sorted(fitted)]


def _fit_band(members: Sequence[Sample], before: Constants, given: Constants) -> Constants:
    weights = weights_of(members)
    now = {**given, **{name: before[name] for name in GRIDS}}
    for _ in range(_ROUNDS):
        for name in GRIDS:
            told = [sample for sample in members if tells(sample, name)]
            now[name] = _best(name, now, before[name], {s: weights[s] for s in told})
    return now


def tells(sample: Sample, name: str) -> bool:
    """Whether what was logged of the sample depends on the constant."""
    if sample.band < SINCE.get(name, 0):
        return False
    if name == "graph_gib" and sample.graphs is not None and sample.captures:
        return True
    return name in sample.constants


def weights_of(samples: Sequence[Sample]) -> dict[Sample, float]:
    """1/√n, n being how many samples of its group there are."""
    groups = Counter(sample.group for sample in samples)
    return {sample: groups[sample.group] ** -0.5 for sample in samples}


def _best(name: str, now: Constants, before: float, told: Mapping[Sample, float]) -> float:
    """The value of the grid that fits best, drawn back to ``before`` where little tells of it."""
    if not told:
        return before
    grid = GRIDS[name]
    origin = min(range(len(grid)), key=lambda index: abs(grid[index] - before))

    def cost(index: int) -> tuple[float, float]:
        constants = {**now, name: grid[index]}
        off = sum(weight * error(sample, constants) for sample, weight in told.items())
        return off + PULL * abs(index - origin), abs(index - origin)

    best = min(range(len(grid)), key=cost)
    weight = sum(told.values())
    return grid[origin + round((best - origin) * weight / (weight + SHRINK))]


def error(sample: Sample, constants: Constants) -> float:
    """The sum of what is off, as a share of the card."""
    values = sample.values(constants)
    found = [] if sample.rest is None else [sum(values.values()) - sample.rest]
    if sample.activation is not None:
        found.append(sum(values.get(name, 0.0) for name in sample.peak_lines) - sample.activation)
    if sample.outside_torch is not None:
        found.append(values["non_torch"] - sample.outside_torch)
    if sample.graphs is not None:
        found.append(sample.captures * constants["graph_gib"] - sample.graphs)
    return sum(each if each > 0 else -TOO_LITTLE * each for each in found) / sample.total
