"""Memory that is neither weights nor cache: fitted constants by engine version, with their spread.

Nothing here is exact. Each band says what it was fitted on; a plan shows the values as
`calibrated` with their range. Fits: start-up logs in public threads of vLLM and its users,
collected until November 2026; n is the number of starts that state the part.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from kvplan.engines.base import Version


@dataclass(frozen=True, slots=True)
class Range:
    """A fitted figure with the interval that the starts span."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class RuntimeBand:
    """Constants that hold from one version to the next row.

    Attributes:
        since: First release of the band.
        until: Last release whose starts it was fitted on; later ones take it with wider ranges.
        logits_bytes: Bytes per sampled request and vocabulary entry in the profile run.
        layer_bytes: Bytes per batched token and unit of hidden width (and of feed-forward
            width on the rank) in the profile run.
        workspace_gib: Extra of mixture-of-experts and MLA layers.
        non_torch_gib, non_torch_tp_gib: After the baseline snapshot, on one rank and on several.
        non_torch_tp_small_gib: The same on several ranks of devices without NVLink multicast
            (neither Hopper nor data-centre Blackwell).
        graphs_gib: CUDA graphs.
        source: What was fitted, n included.
    """

    since: Version
    until: Version
    logits_bytes: Range
    layer_bytes: Range
    workspace_gib: Range
    non_torch_gib: Range
    non_torch_tp_gib: Range
    non_torch_tp_small_gib: Range
    graphs_gib: Range
    source: str


_WORKSPACE = Range(0.5, 0.0, 1.0)

VLLM_BANDS: tuple[RuntimeBand, ...] = (
    RuntimeBand(
        since=(0, 9),
        until=(0, 16),
        logits_bytes=Range(38.5, 30.0, 45.0),
        layer_bytes=Range(6.0, 2.0, 9.0),
        workspace_gib=_WORKSPACE,
        non_torch_gib=Range(0.10, 0.02, 0.20),
        non_torch_tp_gib=Range(0.80, 0.40, 1.50),
        non_torch_tp_small_gib=Range(0.50, 0.10, 1.00),
        graphs_gib=Range(0.85, 0.0, 4.1),
        source="vLLM 0.9-0.16: activation n=7, non-torch n=5 (one GPU) and 2 (several), "
        "graphs n=34",
    ),
    RuntimeBand(
        since=(0, 17),
        until=(0, 19),
        logits_bytes=Range(14.0, 12.0, 20.0),
        layer_bytes=Range(6.0, 3.0, 9.0),
        workspace_gib=_WORKSPACE,
        non_torch_gib=Range(0.25, 0.10, 0.50),
        non_torch_tp_gib=Range(2.10, 0.50, 2.50),
        non_torch_tp_small_gib=Range(0.25, 0.05, 1.80),
        graphs_gib=Range(0.95, 0.2, 3.2),
        source="vLLM 0.17-0.19: activation n=17, non-torch n=13 (one GPU) and 4 (several, all "
        "H100), graphs n=22",
    ),
    RuntimeBand(
        since=(0, 20),
        until=(0, 30),
        logits_bytes=Range(14.0, 12.0, 20.0),
        layer_bytes=Range(6.0, 3.0, 9.0),
        workspace_gib=_WORKSPACE,
        non_torch_gib=Range(0.34, 0.25, 1.50),
        non_torch_tp_gib=Range(2.10, 0.50, 2.50),
        non_torch_tp_small_gib=Range(0.25, 0.05, 1.80),
        graphs_gib=Range(0.40, 0.0, 2.55),
        source="vLLM 0.20-0.30: activation n=18, non-torch n=10 (one GPU) and 4 (several), graph "
        "estimate n=16; thin",
    ),
)

# Created before the engine takes its snapshot, hence outside its budget.
CUDA_CONTEXT_GIB = Range(0.45, 0.30, 0.60)
NCCL_GIB = Range(0.40, 0.10, 1.00)
OUTSIDE_SOURCE = "public vLLM starts 0.11 and later; range of what logs and nvidia-smi show"


# Beyond the releases that were measured every range grows by this share of its own half-widths.
WIDENED = 0.5


def vllm_band(version: Version) -> RuntimeBand:
    """The band that a release falls into, its ranges widened beyond the measured releases."""
    band = [band for band in VLLM_BANDS if band.since <= version][-1]
    return _widened(band) if is_beyond(version) else band


def is_beyond(version: Version) -> bool:
    """Whether the release is newer than every start its band was fitted on."""
    band = [band for band in VLLM_BANDS if band.since <= version][-1]
    return version[:2] > band.until


@cache
def _widened(band: RuntimeBand) -> RuntimeBand:
    return RuntimeBand(
        since=band.since,
        until=band.until,
        logits_bytes=_wider(band.logits_bytes),
        layer_bytes=_wider(band.layer_bytes),
        workspace_gib=_wider(band.workspace_gib),
        non_torch_gib=_wider(band.non_torch_gib),
        non_torch_tp_gib=_wider(band.non_torch_tp_gib),
        non_torch_tp_small_gib=_wider(band.non_torch_tp_small_gib),
        graphs_gib=_wider(band.graphs_gib),
        source=f"{band.source}; ranges widened for a later release",
    )


def _wider(fitted: Range) -> Range:
    return Range(
        fitted.value,
        max(0.0, fitted.low - WIDENED * (fitted.value - fitted.low)),
        fitted.high + WIDENED * (fitted.high - fitted.value),
    )
