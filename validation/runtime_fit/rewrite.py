"""calibration.yaml in the form that it has: its head is kept, figures are replaced."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from kvplan.engines.base import Version
from kvplan.engines.vllm.calibration import RuntimeBand, bands
from runtime_fit.conformal import Spread
from runtime_fit.samples import Sample
from runtime_fit.spread import Fitted

FILE = Path(__file__).parents[2] / "kvplan" / "engines" / "vllm" / "calibration.yaml"
# Below this a band's `source` says that it is thin.
_FEW = 12


def rewritten(
    text: str,
    samples: Sequence[Sample],
    constants: Sequence[dict[str, Fitted]],
    ranges: Sequence[Spread],
) -> str:
    """The file with new figures: its head, what was measured, the bands."""
    head = text[: text.index("measured:\n")]
    lines = [*_measured(samples), "bands:"]
    for index, band in enumerate(bands()):
        members = [sample for sample in samples if sample.band == index]
        lines += _band(band, members, constants[index], ranges[index])
    return head + "\n".join(lines) + "\n"


def _measured(samples: Sequence[Sample]) -> Iterator[str]:
    yield "measured:"
    yield "  sizes:"
    for name in samples[0].conditions.sizes:
        values = [sample.conditions.sizes[name] for sample in samples]
        yield f"    {name}: [{min(values)}, {max(values)}]"
    yield "  kinds:"
    kinds = Counter(kind for sample in samples for kind in sample.conditions.kinds)
    yield from (f"    {kind}: {count}" for kind, count in sorted(kinds.items()))
    yield "  devices:"
    devices = Counter(sample.conditions.device for sample in samples)
    yield from (f'    "{device}": {count}' for device, count in sorted(devices.items()))


def _band(
    band: RuntimeBand, members: Sequence[Sample], constants: dict[str, Fitted], spread: Spread
) -> Iterator[str]:
    yield f"  - engine: {band.engine}"
    yield f'    since: "{_release(band.since)}"'
    yield f'    until: "{_release(band.until)}"'
    for name, each in constants.items():
        figures = ", ".join(_figure(figure) for figure in (each.value, each.low, each.high))
        yield f"    {name}: [{figures}, {each.n}]"
    yield f"    interval: [{spread.low:.2f}, {spread.high:.2f}, {spread.n}]"
    yield f'    source: "{_source(band, members)}"'


def _source(band: RuntimeBand, members: Sequence[Sample]) -> str:
    sweep = sum(sample.is_sweep for sample in members)
    of_sweep = f", {sweep} of them one sweep of an H100" if sweep else ""
    engine = " with the engine before V1" if band.engine == "v0" else ""
    thin = "; thin" if len(members) < _FEW else ""
    releases = f"{_release(band.since)}-{_release(band.until)}"
    return f"vLLM {releases}{engine}: {len(members)} starts{of_sweep}{thin}"


def _release(version: Version) -> str:
    return ".".join(map(str, version))


def _figure(value: float) -> str:
    return f"{float(f'{value:.3g}')}"
