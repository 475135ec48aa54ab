"""Which part of the budget a prediction missed most: the ledger's lines against the log's parts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kvplan.host_profile import ACTIVATION, GRAPHS
from kvplan.ledger import LedgerLine
from kvplan.measurement import Measurement
from kvplan.units import GIB

# Below this a part explains nothing, whatever the miss.
_LEAST_GIB = 0.05
# A part that explains less than this share of the miss is not its cause.
_LEAST_SHARE = 0.5
_GRAPHS_COUNTED = (0, 27)


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of the budget: what kvplan takes it for, and what the log says (None: nothing)."""

    name: str
    predicted: float
    spread: float
    logged: float | None

    @property
    def excess(self) -> float:
        """GiB by which it is predicted too large."""
        return 0.0 if self.logged is None else self.predicted - self.logged


def weights_bytes(ledger: tuple[LedgerLine, ...]) -> int:
    """Bytes of the model as loaded, drafts included."""
    return sum(line.bytes for line in ledger if _in_budget(line, "weights"))


def cause(ledger: tuple[LedgerLine, ...], record: Measurement, miss_gib: float) -> str:
    """One sentence on a miss of ``miss_gib`` (above zero: too much was promised)."""
    if abs(miss_gib) < _LEAST_GIB:
        return "none to speak of"
    parts = tuple(_parts(ledger, record))
    logged = [part for part in parts if part.logged is not None]
    main = min(logged, key=lambda part: abs(miss_gib + part.excess), default=None)
    if main is not None and -main.excess / miss_gib >= _LEAST_SHARE:
        return f"{main.name}: {main.predicted:.2f} GiB predicted, {main.logged:.2f} logged"
    unknown = [part for part in parts if part.logged is None and part.predicted > 0]
    if not unknown:
        return _several(logged, miss_gib)
    widest = max(unknown, key=lambda part: part.spread)
    names = ", ".join(part.name for part in unknown)
    return f"not logged: {names}; least certain is {widest.name} ({widest.predicted:.2f} GiB)"


def _several(logged: Sequence[_Part], miss_gib: float) -> str:
    """The parts that are off in the direction of the miss, the largest first."""
    off = [
        part for part in logged if -part.excess * miss_gib > 0 and abs(part.excess) >= _LEAST_GIB
    ]
    named = (
        f"{part.name} ({part.predicted:.2f} GiB predicted, {part.logged:.2f} logged)"
        for part in sorted(off, key=lambda part: -abs(part.excess))
    )
    return f"several parts: {', '.join(named)}" if len(off) > 1 else "no single part"


def _parts(ledger: tuple[LedgerLine, ...], record: Measurement) -> Iterator[_Part]:
    for name, starts, logged in (
        ("weights", ("weights",), record.weights_gib),
        ("activation peak", _activation(record), record.activation_peak_gib),
        ("memory past torch's allocator", ("non_torch", "nccl"), record.non_torch_gib),
        ("CUDA graphs", GRAPHS, record.cudagraph_est_gib),
    ):
        lines = [line for line in ledger if any(_in_budget(line, start) for start in starts)]
        if lines:
            yield _Part(
                name=name,
                predicted=sum(line.bytes for line in lines) / GIB,
                spread=sum(line.high - line.low for line in lines) / GIB,
                logged=logged,
            )


def _activation(record: Measurement) -> tuple[str, ...]:
    """The lines of what a log calls activation: that of vLLM counts graphs in since 0.27.

    Source: vllm/v1/worker/gpu_worker.py of 0.27, determine_available_memory.
    """
    found = re.match(r"(\d+)\.(\d+)", record.engine_version or "")
    late = found is not None and (int(found[1]), int(found[2])) >= _GRAPHS_COUNTED
    return (*ACTIVATION, *(GRAPHS if late else ()))


def _in_budget(line: LedgerLine, start: str) -> bool:
    return line.section == "budget" and line.name.startswith(start)
