"""What starts had: the inputs that a range counts as covered, and by how much others widen it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from kvplan.engines.vllm.calibration import Measured
from kvplan.engines.vllm.coverage import covered
from runtime_fit.samples import Sample

# A band of which no start is known: as wide as if two inputs were beyond.
_NONE_KNOWN = 2.0


def measured_of(samples: Sequence[Sample]) -> Measured:
    """What the starts of a band had; there is at least one."""
    names = samples[0].conditions.sizes
    return Measured(
        sizes={
            name: (
                min(sample.conditions.sizes[name] for sample in samples),
                max(sample.conditions.sizes[name] for sample in samples),
            )
            for name in names
        },
        kinds=Counter(kind for sample in samples for kind in sample.conditions.kinds),
        devices=Counter(sample.conditions.device for sample in samples),
    )


def widening(sample: Sample, known: Sequence[Sample]) -> float:
    """By how much a plan's range is wider that has only the known starts to go by."""
    members = [each for each in known if each.band == sample.band]
    if not members:
        return _NONE_KNOWN
    return covered(sample.conditions, measured_of(members), (), "").factor
