"""Memory that is neither weights nor cache: fitted constants by engine version, with their spread.

Nothing here is exact. Each band says what it was fitted on; a plan shows the values as
`calibrated` with their range. Fits: start-up logs in public threads of vLLM and its users,
collected until November 2026; n is the number of starts that state the part.
"""

from __future__ import annotations

from dataclasses import dataclass

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
        logits_bytes=Range(14.0, 12.0, 20.0),
        layer_bytes=Range(6.0, 3.0, 9.0),
        workspace_gib=_WORKSPACE,
        non_torch_gib=Range(0.34, 0.25, 1.50),
        non_torch_tp_gib=Range(2.10, 0.50, 2.50),
        non_torch_tp_small_gib=Range(0.25, 0.05, 1.80),
        graphs_gib=Range(0.40, 0.0, 2.55),
        source="vLLM 0.20-0.28: activation n=18, non-torch n=10 (one GPU) and 4 (several), graph "
        "estimate n=16; thin",
    ),
)

# Created before the engine takes its snapshot, hence outside its budget.
CUDA_CONTEXT_GIB = Range(0.45, 0.30, 0.60)
NCCL_GIB = Range(0.40, 0.10, 1.00)
OUTSIDE_SOURCE = "public vLLM starts 0.11 and later; range of what logs and nvidia-smi show"


def vllm_band(version: Version) -> RuntimeBand:
    """The band that a release falls into."""
    return [band for band in VLLM_BANDS if band.since <= version][-1]
