"""Memory that is neither weights nor cache: what fitted figures of all engines have in common.

Nothing here is exact. A plan shows fitted values as `calibrated`, with their range and what they
were fitted on; each engine keeps its own constants.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Range:
    """A fitted figure with the interval that the starts span.

    Attributes:
        n: Starts that state the part; 0: taken over from a like case.
    """

    value: float
    low: float
    high: float
    n: int = 0


# Created before vLLM takes its snapshot, hence outside its budget.
CUDA_CONTEXT_GIB = Range(0.45, 0.30, 0.60)
NCCL_GIB = Range(0.40, 0.10, 1.00)
OUTSIDE_SOURCE = "public vLLM starts 0.11 and later; range of what logs and nvidia-smi show"
