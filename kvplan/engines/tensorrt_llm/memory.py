"""One rank's memory as ledger lines, and the bytes that remain for the cache.

cache = fraction × (total - peak), where the peak holds weights, what a run of max_num_tokens
needs, and everything outside torch. The rest of the fraction stays free.
Source: tensorrt_llm/_torch/pyexecutor/_util.py _cal_max_memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from kvplan.engines import occupied, runtime
from kvplan.engines.tensorrt_llm.blocks import Share
from kvplan.engines.tensorrt_llm.frame import Frame
from kvplan.engines.tensorrt_llm.runtime_ranges import BANDS, NCCL_GIB, NCCL_SOURCE, Band
from kvplan.engines.weight_drafts import drafts_of, origin
from kvplan.hardware import DeviceMemory
from kvplan.ledger import Draft
from kvplan.models.formats import PLAIN, ceil_div
from kvplan.models.weights import RankLayout, rank_parts
from kvplan.units import GIB

SOURCE = "tensorrt_llm/_torch/pyexecutor/_util.py _cal_max_memory"
BUDGET = "floor((total_bytes - peak_bytes) * free_gpu_memory_fraction)"


@dataclass(frozen=True, slots=True)
class RankMemory:
    """One rank, before the pool is cut.

    Attributes:
        spent: Lines of the measured peak, without the cache.
        released: Names of those that the engine gives back before it allocates the cache.
    """

    device: DeviceMemory
    fraction: float
    spent: tuple[Draft, ...]
    released: frozenset[str] = frozenset({"activation_peak"})

    @property
    def peak(self) -> int:
        """Bytes of the peak."""
        return sum(draft.value() for draft in self.spent)

    @property
    def used_by_others(self) -> int:
        """Bytes that other programs hold on the fullest card."""
        return occupied.held(self.spent)

    @property
    def idle(self) -> RankMemory:
        """The same rank on a card that nobody else uses."""
        return replace(self, spent=occupied.without(self.spent))

    @property
    def share(self) -> Share:
        """Bytes for the cache by the estimate, and by what is free when it is allocated."""
        return self._share(self.device.total, [(d, d.value()) for d in self.spent])

    @property
    def low(self) -> Share:
        """The same if every line is at its high end."""
        return self._share(self.device.low, [(d, d.value(d.high)) for d in self.spent])

    @property
    def high(self) -> Share:
        """The same if every line is at its low end."""
        return self._share(self.device.high, [(d, d.value(d.low)) for d in self.spent])

    def _share(self, total: int, spent: Sequence[tuple[Draft, int]]) -> Share:
        left = total - sum(size for _, size in spent)
        given_back = sum(size for draft, size in spent if draft.name in self.released)
        return Share(self._part(left), self._part(left + given_back))

    def _part(self, left: int) -> int:
        return int(left * self.fraction) if left > 0 else left


def rank_memory(frame: Frame, layout: RankLayout) -> RankMemory:
    """All lines of one rank but the cache's."""
    band = BANDS[frame.settings.backend]
    spread = frame.setup.parallelism
    lines = [*_weights(frame, layout), _activation(frame, band)]
    lines += [_gib_line("outside_torch", band.outside_gib, band.source)]
    lines += [_gib_line("decoder_buffers", band.decoder_gib, band.source)]
    if spread.tp * spread.pp > 1:
        lines.append(replace(_gib_line("nccl", NCCL_GIB, NCCL_SOURCE), confidence="assumed"))
    # The measured peak is what the device misses, whoever took it.
    lines += occupied.lines(occupied.fullest_card(frame.setup), "budget")
    return RankMemory(frame.device, frame.settings.free_gpu_memory_fraction, tuple(lines))


def layout_of(frame: Frame, stage: tuple[int, int], *, first: bool, last: bool) -> RankLayout:
    """The part of the model on one rank: whole but for the experts under attention DP."""
    tp = frame.setup.parallelism.tp
    return RankLayout(
        tp=frame.attention_tp,
        ep=frame.settings.moe_expert_parallel_size,
        expert_tp=tp,
        layers=stage,
        first=first,
        last=last,
        vocab_multiple=frame.attention_tp,
    )


def _weights(frame: Frame, layout: RankLayout) -> tuple[Draft, ...]:
    model = frame.setup.model
    parts = rank_parts(model.weights, PLAIN[frame.dtype], layout, tied=model.tied_embeddings)
    source, confidence = origin(model)
    return drafts_of(parts, source=source, confidence=confidence)


def _activation(frame: Frame, band: Band) -> Draft:
    """What a run of max_num_tokens needs at once."""
    model = frame.setup.model
    width = model.intermediate_size * max(1, model.experts_per_token)
    return _fitted(
        "activation_peak",
        "ceil(tokens * layer_bytes * (hidden + intermediate))",
        {
            "tokens": frame.settings.max_num_tokens,
            "hidden": model.hidden_size,
            "intermediate": ceil_div(width, frame.attention_tp),
        },
        {"layer_bytes": band.layer_bytes},
        source=f"run of max_num_tokens; {band.source}",
    )


def _gib_line(name: str, fitted: runtime.Range, source: str) -> Draft:
    return _fitted(
        name, f"ceil({name}_gib * gib)", {"gib": GIB}, {f"{name}_gib": fitted}, source=source
    )


def _fitted(
    name: str,
    formula: str,
    inputs: Mapping[str, int | float],
    varied: Mapping[str, runtime.Range],
    *,
    source: str,
) -> Draft:
    return Draft(
        name,
        "budget",
        formula,
        {**inputs, **{key: fitted.value for key, fitted in varied.items()}},
        source=source,
        confidence="calibrated",
        low={key: fitted.low for key, fitted in varied.items()},
        high={key: fitted.high for key, fitted in varied.items()},
    )
