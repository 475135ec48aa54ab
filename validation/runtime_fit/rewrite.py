"""calibration.yaml in the form that it has: its head is kept, figures are replaced."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from kvplan.engines.base import Version
from kvplan.engines.vllm.calibration import Measured, RuntimeBand, bands
from runtime_fit.conformal import Spread
from runtime_fit.measured import measured_of
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
    """The file with new figures: its head, and the bands."""
    head = text[: text.index("bands:\n")]
    lines = ["bands:"]
    for index, band in enumerate(bands()):
        members = [sample for sample in samples if sample.band == index]
        lines += _band(band, members, constants[index], ranges[index])
    return head + "\n".join(lines) + "\n"


def _measured(found: Measured) -> Iterator[str]:
    sizes = (f"{name}: [{low}, {high}]" for name, (low, high) in found.sizes.items())
    kinds = (f"{kind}: {count}" for kind, count in sorted(found.kinds.items()))
    devices = (f'"{device}": {count}' for device, count in sorted(found.devices.items()))
    yield "    measured:"
    yield f"      sizes: {{{', '.join(sizes)}}}"
    yield f"      kinds: {{{', '.join(kinds)}}}"
    yield f"      devices: {{{', '.join(devices)}}}"


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
    yield from _measured(measured_of(members))
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
