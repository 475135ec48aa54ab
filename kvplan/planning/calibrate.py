"""This host's own offsets from fitted figures: few starts move them little, many move them much.

Empirical Bayes, one part of memory at a time. The prior says that a host's offset is 0 give or take
the spread that the plan's own range states; starts of the host scatter by what they scatter. The
offset is the mean of the starts times n / (n + k), k = PRIOR_STARTS × max(1, scatter² / spread²):
one start moves a figure by a quarter of what it shows, ten by three quarters, and starts that
disagree by less.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import exp, log
from statistics import fmean, median, variance

from kvplan.engines.base import Answer
from kvplan.errors import InputError, KvplanError
from kvplan.hardware import device_memory
from kvplan.host_profile import ACTIVATION, GRAPHS, MOST_GIB, NON_TORCH, Factor, HostProfile, Offset
from kvplan.ledger import LedgerLine
from kvplan.measurement import Measurement
from kvplan.planning.validate.lacking import LackingError, extra
from kvplan.planning.validate.match import Finder, Matcher, Start
from kvplan.units import GIB

# How many starts the prior counts as.
PRIOR_STARTS = 3.0
# Ledger ranges enclose nine in ten: so many standard deviations on each side.
_DEVIATIONS = 1.645
# Loaded weights are off by this (validation/README.md: 95th percentile 1.07 %).
_WEIGHTS_SPREAD = 0.005
# A part smaller than this says nothing of a factor.
_LEAST_GIB = 0.02
_MOST_FACTOR = 10.0
# A part whose range reaches down to nothing counts as that share at least.
_LEAST_SHARE = 0.2
_PROFILED = "vllm"
# The figures of a record that a profile rests on.
_AMOUNTS = (
    *("weights_gib", "activation_peak_gib", "non_torch_gib", "cudagraph_est_gib"),
    "available_kv_gib",
)
# Where `kvplan measure` counts tensors instead of a GPU's memory.
_NO_DEVICES = ("cpu", "fake")


@dataclass(frozen=True, slots=True)
class Observed:
    """One part of one start, GiB: as planned, give or take the spread, and as it was."""

    planned: float
    spread: float
    measured: float


@dataclass(frozen=True, slots=True)
class Calibration:
    """A profile, and what it does not rest on.

    Attributes:
        profile: What was learned.
        used: Ids of the starts that it rests on.
        skipped: Id and reason of the others.
    """

    profile: HostProfile
    used: tuple[str, ...]
    skipped: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class _Start:
    """The parts of one start by name, and whose it was."""

    parts: dict[str, Observed]
    gpu: str
    version: str | None


def calibrate(records: Iterable[Measurement], finder: Finder, *, name: str) -> Calibration:
    """Learns a host's offsets from its own starts.

    Args:
        records: Measured starts, all of one host.
        finder: Where models, GPUs and engines come from.
        name: What ledger lines shall name as their source.

    Raises:
        InputError: no record says anything of fitted memory.
    """
    matcher = Matcher(finder)
    # The same log read twice is one start; two starts may have the same id, as logs the same name.
    distinct = dict.fromkeys(record.json_line() for record in records)
    used: list[tuple[str, _Start]] = []
    skipped: list[tuple[str, str]] = []
    for number, line in enumerate(distinct, 1):
        record = Measurement.model_validate_json(line)
        named = record.id or f"record {number}"
        try:
            _refuse_counts(record)
            used.append((named, _start(record, matcher.match(record))))
        except (LackingError, KvplanError) as reason:
            skipped.append((named, str(reason)))
    if not used:
        why = f"The first: {skipped[0][1]}" if skipped else "There is no record."
        raise InputError(
            "No record says how this host's memory differs from the plan.",
            hint=f"A start of vLLM with its GPU, utilization and logged memory does. {why}",
        )
    names, starts = zip(*used, strict=True)
    return Calibration(_profile(starts, name), names, tuple(skipped))


def _refuse_counts(record: Measurement) -> None:
    """Refuses what `kvplan measure` counted without a GPU.

    Raises:
        LackingError: it did.
    """
    device = extra(record, "measured_on")
    if device in _NO_DEVICES:
        raise LackingError(
            f"it was counted on {device}, which says nothing of a GPU's memory: "
            "`kvplan measure --device cuda` measures it"
        )


def _profile(starts: Sequence[_Start], name: str) -> HostProfile:
    def seen(part: str) -> list[Observed]:
        return [start.parts[part] for start in starts if part in start.parts]

    return HostProfile(
        name=name,
        engine=_PROFILED,
        versions=tuple(sorted({start.version for start in starts if start.version})),
        gpus=tuple(sorted({start.gpu for start in starts})),
        starts=len(starts),
        weights=factor(seen("weights")),
        activation=factor(seen("activation")),
        non_torch=offset(seen("non_torch")),
        graphs=factor(seen("graphs")),
    )


def factor(parts: Sequence[Observed]) -> Factor:
    """The factor of a part: the offset of its logarithm."""
    told = [part for part in parts if min(part.planned, part.measured) >= _LEAST_GIB]
    if not told:
        return Factor()
    logs = [log(part.measured / part.planned) for part in told]
    spread = median(part.spread / part.planned for part in told)
    value = exp(shrunk(logs, spread))
    return Factor(value=_stored(min(_MOST_FACTOR, max(1 / _MOST_FACTOR, value))), starts=len(told))


def offset(parts: Sequence[Observed]) -> Offset:
    """The offset of a part."""
    if not parts:
        return Offset()
    spread = median(part.spread for part in parts)
    gib = shrunk([each.measured - each.planned for each in parts], spread)
    return Offset(gib=_stored(gib), starts=len(parts))


def _stored(figure: float) -> float:
    """As precise as a file has to be."""
    return round(figure, 4) + 0.0  # no minus before a zero


def shrunk(offsets: Sequence[float], spread: float) -> float:
    """The mean of what starts show, drawn to 0 by how few they are and how much they scatter.

    Args:
        offsets: What each start shows; at least one.
        spread: Standard deviation of hosts around 0.
    """
    n = len(offsets)
    scatter = variance(offsets) if n > 1 else 0.0
    within = scatter / spread**2 if spread else 1.0
    return fmean(offsets) * n / (n + PRIOR_STARTS * max(1.0, within))


def _start(record: Measurement, start: Start) -> _Start:
    """Planned and measured parts of one start.

    Raises:
        LackingError: it says nothing of them.
    """
    if start.engine.name != _PROFILED:
        raise LackingError(f"profiles are made of starts of vLLM, not of {start.engine.name}")
    if not start.gpu_stated:
        raise LackingError("gpu is not stated: `kvplan read-log --gpu` names it")
    if record.engine_version is None:
        raise LackingError("engine_version is not stated: releases differ by more than hosts")
    _refuse_amounts(record, start)
    model = start.loaded() if record.weights_gib is None else start.model
    answer = start.engine.prepare(start.memory(model)).answer(start.context, None)
    parts = _logged(record, answer.ledger)
    rest = _unlogged(record, answer, parts)
    parts |= rest
    if not parts:
        raise LackingError("neither a part of its memory nor the cache is stated")
    return _Start(parts=parts, gpu=start.gpu.id, version=record.engine_version)


def _refuse_amounts(record: Measurement, start: Start) -> None:
    """Refuses figures that the card can't have had, such as MiB that are called GiB.

    Raises:
        LackingError: it states one.
    """
    most = min(device_memory(start.gpu).high / GIB, MOST_GIB)
    for name in _AMOUNTS:
        stated: float | None = getattr(record, name)
        if stated is not None and not -most <= stated <= most:
            raise LackingError(
                f"{name} is no memory of a card of {most:.1f} GiB: {stated:g} GiB "
                "(figures of records are GiB, not MiB)"
            )


def _logged(record: Measurement, ledger: tuple[LedgerLine, ...]) -> dict[str, Observed]:
    """The parts that the log states."""
    found = {}
    for name, measured in (
        ("weights", record.weights_gib),
        ("activation", record.activation_peak_gib),
        ("non_torch", record.non_torch_gib),
        ("graphs", record.cudagraph_est_gib),
    ):
        lines = _lines(name, ledger)
        if measured is not None and lines:
            found[name] = Observed(*_planned(name, lines), measured)
    return found


def _unlogged(
    record: Measurement, answer: Answer, logged: dict[str, Observed]
) -> dict[str, Observed]:
    """What the cache tells of the other parts: each takes its share of the variance."""
    if record.available_kv_gib is None or not _is_closed(record):
        return {}
    off = answer.kv.budget_bytes / GIB - record.available_kv_gib
    off -= sum(part.measured - part.planned for part in logged.values())
    open_parts = {}
    for name in ("activation", "non_torch", "graphs"):
        lines = [line for line in _lines(name, answer.ledger) if line.section == "budget"]
        if lines and name not in logged:
            open_parts[name] = _planned(name, lines)
    variances = sum(spread**2 for _, spread in open_parts.values())
    return {
        name: Observed(planned, spread, max(0.0, planned + off * spread**2 / variances))
        for name, (planned, spread) in open_parts.items()
        if variances
    }


def _is_closed(record: Measurement) -> bool:
    """Whether the budget was stated and nothing beside vLLM's own parts was taken from it."""
    assumed = extra(record, "gpu_memory_utilization_assumed")
    others = ("sleep_mode", "cpu_offload_gib", "kv_cache_memory_bytes", "num_gpu_blocks_override")
    kept = any(extra(record, name) for name in others)
    return record.gpu_memory_utilization is not None and not assumed and not kept


def _lines(name: str, ledger: Iterable[LedgerLine]) -> list[LedgerLine]:
    names = {"activation": ACTIVATION, "non_torch": NON_TORCH, "graphs": GRAPHS}
    if name == "weights":
        return [line for line in ledger if line.name.startswith("weights.")]
    return [line for line in ledger if line.name in names[name]]


def _planned(name: str, lines: Sequence[LedgerLine]) -> tuple[float, float]:
    """GiB of the lines together, and the standard deviation that their ranges state."""
    planned = sum(line.bytes for line in lines) / GIB
    if name == "weights":
        return planned, _WEIGHTS_SPREAD * planned
    half = sum(line.high - line.low for line in lines) / 2 / GIB
    return planned, max(half / _DEVIATIONS, _LEAST_SHARE * planned)
