"""One rank's memory as ledger lines, and the bytes that remain for the pools.

pools = mem_fraction_static × (free before loading) - weights - reserve for images. What
activations, graphs and tables take comes out of the rest of the free memory.
Source: SGLang 0.5.23, sglang/srt/mem_cache/kv_cache_configurator.py _profile_available_bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from kvplan.engines import occupied, runtime
from kvplan.engines.sglang import runtime_ranges as ranges
from kvplan.engines.sglang.frame import Frame
from kvplan.engines.sglang.weights import weight_lines
from kvplan.hardware import DeviceMemory
from kvplan.ledger import Draft, Section
from kvplan.models.weights import RankLayout
from kvplan.units import GIB, MIB

SOURCE = "SGLang 0.5.23, kv_cache_configurator.py _profile_available_bytes"
STATIC = "floor(free_bytes * mem_fraction_static)"
_MULTICAST = (9, 10)
# A start is refused where a rank has less than this share of what is free on another, unless
# SGLANG_ENABLE_TP_MEMORY_INBALANCE_CHECK (on by default) is off. Source: the model runner's
# init_torch_distributed.
LEAST_OF_OTHERS = 0.9


@dataclass(frozen=True, slots=True)
class RankMemory:
    """One rank, before the pools are cut.

    Attributes:
        before: Lines of what is taken before the model is loaded.
        budget: Lines that the static share pays besides the pools.
        after: Lines of what the rest of the free memory pays.
    """

    device: DeviceMemory
    fraction: float
    before: tuple[Draft, ...]
    budget: tuple[Draft, ...]
    after: tuple[Draft, ...]

    @property
    def free(self) -> int:
        """Bytes free before the model is loaded."""
        return self.device.total - sum(draft.value() for draft in self.before)

    @property
    def used_by_others(self) -> int:
        """Bytes that other programs hold on the fullest card."""
        return occupied.held(self.before)

    @property
    def idle(self) -> RankMemory:
        """The same rank on a card that nobody else uses."""
        return replace(self, before=occupied.without(self.before))

    @property
    def static(self) -> int:
        """Bytes of weights and pools together."""
        return _static(self.free, self.fraction)

    @property
    def spent(self) -> int:
        """Bytes of the static share that the pools do not get."""
        return sum(draft.value() for draft in self.budget)

    @property
    def available(self) -> int:
        """Bytes left for the pools; may be negative."""
        return self.static - self.spent

    @property
    def low(self) -> int:
        """The least of it over the ranges of what is taken before loading."""
        return min(self._ends)

    @property
    def high(self) -> int:
        """The most of it over the ranges of what is taken before loading."""
        return max(self._ends)

    @property
    def _ends(self) -> tuple[int, int]:
        """With most and with least taken before; a negative share turns them round."""
        less = self.device.low - sum(draft.value(draft.high) for draft in self.before)
        more = self.device.high - sum(draft.value(draft.low) for draft in self.before)
        return (
            _static(less, self.fraction) - self.spent,
            _static(more, self.fraction) - self.spent,
        )


def _static(free: int, fraction: float) -> int:
    return static_line(free, fraction).value()


def static_line(free: int, fraction: float) -> Draft:
    """The static share as a formula."""
    return Draft(
        "static",
        "budget",
        STATIC,
        {"free_bytes": free, "mem_fraction_static": fraction},
        source=SOURCE,
        confidence="derived",
    )


def rank_memory(frame: Frame, layout: RankLayout) -> RankMemory:
    """All lines of one rank but the pools'."""
    return RankMemory(
        device=frame.device,
        fraction=frame.settings.mem_fraction_static,
        before=(_context(), *_nccl(frame), *_others(frame)),
        budget=(*weight_lines(frame, layout), *_images(frame)),
        after=(_workspace(), *_graphs(frame)),
    )


def _gib_line(name: str, section: Section, fitted: runtime.Range, source: str) -> Draft:
    key = f"{name}_gib"
    return Draft(
        name,
        section,
        f"ceil({key} * gib)",
        {"gib": GIB, key: fitted.value},
        source=source,
        confidence="calibrated",
        low={key: fitted.low},
        high={key: fitted.high},
    )


def _context() -> Draft:
    return _gib_line("cuda_context", "outside", ranges.CUDA_CONTEXT_GIB, ranges.CUDA_CONTEXT_SOURCE)


def _nccl(frame: Frame) -> tuple[Draft, ...]:
    spread = frame.setup.parallelism
    if spread.tp * spread.pp == 1:
        return ()
    multicast = spread.tp > 1 and frame.sm[0] in _MULTICAST
    fitted = ranges.NCCL_MULTICAST_GIB if multicast else ranges.NCCL_GIB
    return (_gib_line("nccl", "outside", fitted, ranges.NCCL_SOURCE),)


def _others(frame: Frame) -> tuple[Draft, ...]:
    """What is not free before loading, so that the static share is of less."""
    return occupied.lines(occupied.fullest_card(frame.setup), "outside")


def is_uneven(frame: Frame, idle_bytes: int) -> bool:
    """Whether ranks of a replica differ too much in what is free for SGLang to start.

    Args:
        frame: The setup, with what others hold of each card.
        idle_bytes: What is free before loading on a card that nobody else uses.
    """
    spread = frame.setup.parallelism
    if spread.tp == 1:
        return False
    ranks, in_use = spread.tp * spread.pp, frame.setup.gpu.in_use
    used = (*in_use, *[0] * spread.gpus)[: spread.gpus]
    replicas = (used[first : first + ranks] for first in range(0, spread.gpus, ranks))
    return any(
        idle_bytes - max(cards) < LEAST_OF_OTHERS * (idle_bytes - min(cards)) for cards in replicas
    )


def _images(frame: Frame) -> tuple[Draft, ...]:
    reserve = frame.rules.pixels_reserve_mib
    if not reserve or not any(w.component == "vision" for w in frame.setup.model.weights):
        return ()
    return (
        Draft(
            "image_reserve",
            "budget",
            "reserve_mib * mib",
            {"reserve_mib": reserve, "mib": MIB},
            source="SGLang 0.5.23, mm_runtime_reservation_gb (SGLANG_VLM_CACHE_SIZE_MB)",
            confidence="exact",
        ),
    )


def _workspace() -> Draft:
    return _gib_line("workspaces", "outside", ranges.WORKSPACE_GIB, ranges.AFTER_SOURCE)


def _graphs(frame: Frame) -> tuple[Draft, ...]:
    if frame.settings.disable_cuda_graph:
        return ()
    return (_gib_line("cuda_graphs", "outside", ranges.GRAPHS_GIB, ranges.AFTER_SOURCE),)
