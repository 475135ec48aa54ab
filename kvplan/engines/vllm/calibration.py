"""Fitted constants of vLLM's runtime memory, by release: `calibration.yaml` as typed bands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from kvplan.engines.base import Version, parse_version
from kvplan.engines.runtime import Range
from kvplan.units import GIB

# In what starts differ whatever their shape: contexts, libraries, the driver. A range rests on
# fitted memory and this much more, so that a start with little of it has one too.
UNSHAPED_GIB = 0.5


@dataclass(frozen=True, slots=True)
class Interval:
    """What a measured cache may have less and more, as a share of what is uncertain.

    Attributes:
        low, high: Shares. A conformal range: of starts like those that were fitted, nine in ten
            lie within.
        n: Starts that it rests on.
    """

    low: float
    high: float
    n: int

    def ends(self, fitted_bytes: int) -> tuple[int, int]:
        """Bytes that there may be less, and more: never more than all that is fitted."""
        uncertain = fitted_bytes + UNSHAPED_GIB * GIB
        return round(self.low * uncertain), min(fitted_bytes, round(self.high * uncertain))


@dataclass(frozen=True, slots=True)
class Measured:
    """What the starts that the constants of a band were fitted on cover.

    Attributes:
        sizes: Least and most by name: tp, pp, vocabulary, tokens, requests.
        kinds: Starts by kind of model: experts, latent, recurrent, towers.
        devices: Starts by compute capability, or by vendor where there is none.
    """

    sizes: Mapping[str, tuple[int, int]]
    kinds: Mapping[str, int]
    devices: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class RuntimeBand:
    """Constants that hold from one release to the next band. See `calibration.yaml` for each.

    Attributes:
        since: First release of the band.
        until: Last release whose starts it was fitted on; later ones take it with wider ranges.
        measured: What those starts had.
        source: What was fitted.
    """

    engine: Literal["v0", "v1"]
    since: Version
    until: Version
    logits_bytes: Range
    hidden_bytes: Range
    step_share: Range
    fixed_gib: Range
    multimodal_gib: Range
    latent_gib: Range
    compile_gib: Range
    non_torch_gib: Range
    non_torch_tp_gib: Range
    non_torch_tp_small_gib: Range
    non_torch_intel_gib: Range
    graph_gib: Range
    interval: Interval
    measured: Measured = field(hash=False)
    source: str

    @property
    def releases(self) -> str:
        """First and last release that it was fitted on."""
        return "-".join(".".join(map(str, each)) for each in (self.since, self.until))


@cache
def bands() -> tuple[RuntimeBand, ...]:
    """All bands, oldest first."""
    return tuple(_band(row) for row in _document()["bands"])


@cache
def _document() -> dict[str, Any]:
    import yaml  # noqa: PLC0415 - only needed where memory is planned

    text = files(__package__).joinpath("calibration.yaml").read_text(encoding="utf-8")
    document: dict[str, Any] = yaml.safe_load(text)
    return document


def _measured(block: dict[str, Any]) -> Measured:
    return Measured(
        sizes={name: (low, high) for name, (low, high) in block["sizes"].items()},
        kinds=dict(block["kinds"]),
        devices=dict(block["devices"]),
    )


def _band(row: dict[str, Any]) -> RuntimeBand:
    low, high, n = row["interval"]
    return RuntimeBand(
        engine=row["engine"],
        since=parse_version(row["since"]),
        until=parse_version(row["until"]),
        interval=Interval(low, high, n),
        measured=_measured(row["measured"]),
        source=row["source"],
        **{name: _range(row[name]) for name in CONSTANTS},
    )


def _range(values: list[float]) -> Range:
    value, low, high, n = values
    return Range(value, low, high, int(n))


# The fitted constants of a band by name.
CONSTANTS = tuple(
    each.name for each in fields(RuntimeBand) if each.name.endswith(("_bytes", "_gib", "_share"))
)


def nearest(version: Version, *, v0: bool) -> RuntimeBand:
    """The band that a release falls into."""
    engine = "v0" if v0 else "v1"
    return [band for band in bands() if band.engine == engine and band.since <= version][-1]


@cache
def widened(band: RuntimeBand, factor: float) -> RuntimeBand:
    """The band with all its ranges so many times as wide; 1 leaves it as it is."""
    if factor == 1:
        return band
    changes: dict[str, Any] = {name: _wider(getattr(band, name), factor) for name in CONSTANTS}
    interval = Interval(band.interval.low * factor, band.interval.high * factor, band.interval.n)
    source = f"{band.source}; ranges widened by {factor:.2g}"
    return replace(band, **changes, interval=interval, source=source)


def _wider(fitted: Range, factor: float) -> Range:
    return Range(
        fitted.value,
        max(0.0, fitted.value - factor * (fitted.value - fitted.low)),
        fitted.value + factor * (fitted.high - fitted.value),
        fitted.n,
    )
