"""Whether starts like a planned one were measured; where not, by how much ranges widen and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import log2

from kvplan.engines.base import Version
from kvplan.engines.vllm.calibration import Measured, RuntimeBand
from kvplan.engines.vllm.settings import Settings
from kvplan.models.spec import ModelSpec

# What each input beyond the measured starts of the release's band adds to the width of every range,
# for a size once per doubling beyond the largest. A choice, not a fit: nothing was measured there.
STEP = 0.5
# A kind of model or device counts as measured from this many starts on.
LEAST_STARTS = 2
_WORDS = {
    "tp": "tensor parallel size",
    "pp": "pipeline stages",
    "vocabulary": "vocabulary",
    "tokens": "max_num_batched_tokens",
    "requests": "max_num_seqs",
}
_KINDS = {
    "experts": "experts",
    "latent": "latent attention",
    "recurrent": "recurrent layers",
    "towers": "towers for images or sound",
}


@dataclass(frozen=True, slots=True)
class Conditions:
    """What fitted memory depends on, of one start.

    Attributes:
        sizes: tp, pp, vocabulary, tokens and requests of the profile run.
        kinds: Of `experts`, `latent`, `recurrent`, `towers` those that the model has.
        device: Compute capability as ``9.0``, or the vendor where there is none.
    """

    sizes: Mapping[str, int]
    kinds: tuple[str, ...]
    device: str


@dataclass(frozen=True, slots=True)
class Coverage:
    """How well the calibration covers a start.

    Attributes:
        factor: By how much ranges widen; 1: covered.
        beyond: The inputs that no measured start of the band had, in words.
        releases: Those of the band.
    """

    factor: float
    beyond: tuple[str, ...]
    releases: str = ""


def conditions(
    model: ModelSpec, settings: Settings, *, tp: int, pp: int, device: str
) -> Conditions:
    """The conditions of a start."""
    kinds = {cache.kind for cache in model.caches}
    has = {
        "experts": bool(model.experts),
        "latent": "latent" in kinds,
        "recurrent": "recurrent" in kinds,
        "towers": any(weight.component in ("vision", "audio") for weight in model.weights),
    }
    tokens = settings.max_num_batched_tokens
    return Conditions(
        sizes={
            "tp": tp,
            "pp": pp,
            "vocabulary": model.vocab_size,
            "tokens": tokens,
            "requests": min(settings.max_num_seqs, tokens),
        },
        kinds=tuple(name for name, present in has.items() if present),
        device=device,
    )


def device_of(vendor: str, sm: tuple[int, int]) -> str:
    """The device as `Conditions` name it. A bare amount of memory stands for an H100."""
    return f"{sm[0]}.{sm[1]}" if vendor in ("nvidia", "custom") else vendor


def coverage(start: Conditions, band: RuntimeBand, version: Version) -> Coverage:
    """Whether starts like this one were measured, of releases whose constants are taken."""
    return covered(start, band.measured, (*_release(band, version),), band.releases)


def covered(
    start: Conditions, measured: Measured, more: tuple[tuple[str, float], ...], releases: str
) -> Coverage:
    """What of a start lies beyond what was measured.

    Args:
        start: The start.
        measured: What those starts had.
        more: Inputs that lie beyond for another reason, each with its steps.
        releases: Of which releases they were.
    """
    found = (*more, *_device(start, measured), *_shape(start, measured))
    return Coverage(
        factor=1 + STEP * sum(steps for _, steps in found),
        beyond=tuple(words for words, _ in found),
        releases=releases,
    )


def _release(band: RuntimeBand, version: Version) -> Iterator[tuple[str, float]]:
    if version[:2] > band.until:
        release, last = (".".join(map(str, each)) for each in (version, band.until))
        yield f"vLLM {release} (measured up to {last})", 1


def _device(start: Conditions, measured: Measured) -> Iterator[tuple[str, float]]:
    if measured.devices.get(start.device, 0) < LEAST_STARTS:
        number = start.device[0].isdigit()
        yield f"{'compute capability' if number else 'devices of'} {start.device}", 1


def _shape(start: Conditions, measured: Measured) -> Iterator[tuple[str, float]]:
    for name, value in start.sizes.items():
        low, high = measured.sizes[name]
        if value > high:
            yield (
                f"{_WORDS[name]} {value:,} (measured up to {high:,})",
                max(1.0, log2(value / high)),
            )
        elif value < low:
            # Towards nothing there is less to be off by: a step once half as large, and no more.
            yield f"{_WORDS[name]} {value:,} (measured from {low:,})", min(1.0, log2(low / value))
    for kind in start.kinds:
        if measured.kinds.get(kind, 0) < LEAST_STARTS:
            yield _KINDS[kind], 1
