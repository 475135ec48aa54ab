"""What llama-server is started with: as asked for, or as Ollama fills it in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kvplan.engines.base import Setup
from kvplan.engines.llamacpp.devices import Machine, machine_of
from kvplan.engines.ollama import defaults
from kvplan.models.formats import PLAIN
from kvplan.models.weights import stored_bytes
from kvplan.plan import Reason
from kvplan.units import format_count

_SMALLEST_WITH_IMAGES = 2048


@dataclass(frozen=True, slots=True)
class Server:
    """One llama-server.

    Attributes:
        num_ctx: Cells of one request.
        reasons: What Ollama decided by itself.
    """

    num_ctx: int
    parallel: int
    batch: int
    reasons: tuple[Reason, ...]


def server_of(setup: Setup, given: Mapping[str, Any]) -> Server:
    """The server for a setup; ``given`` are its checked options."""
    machine = machine_of(setup, ())
    reasons: list[Reason] = []
    parallel = _parallel(setup, given, reasons)
    num_ctx = _context(setup, given, machine, reasons)
    return Server(
        num_ctx=num_ctx,
        parallel=parallel,
        batch=given.get("num_batch") or _batch(setup, given, machine, num_ctx * parallel),
        reasons=tuple(reasons),
    )


def _parallel(setup: Setup, given: Mapping[str, Any], reasons: list[Reason]) -> int:
    parallel = int(given.get("num_parallel", 1))
    if parallel == 1 or not defaults.one_at_a_time(setup.model):
        return parallel
    reasons.append(
        Reason(
            code="one_at_a_time",
            message=(
                f"Ollama serves {setup.model.model_type} one request at a time, whatever "
                "OLLAMA_NUM_PARALLEL says."
            ),
        )
    )
    return 1


def _context(
    setup: Setup, given: Mapping[str, Any], machine: Machine, reasons: list[Reason]
) -> int:
    """num_ctx as given; the context that was asked for; or by the memory of the GPUs."""
    longest = setup.model.max_context
    asked: int | None = given.get("num_ctx")
    if asked is None and setup.context != longest:
        asked = setup.context
    if asked is None:
        asked = defaults.default_context(sum(g.memory.total for g in machine.gpus if g.memory))
        reasons.append(
            Reason(
                code="num_ctx_by_memory",
                message=(
                    f"Left to itself Ollama takes num_ctx {format_count(asked)} for the memory of "
                    "these GPUs, or the model's maximum if that is less."
                ),
                hint="Give --context or -o num_ctx for another.",
            )
        )
    if setup.model.images is not None:
        asked = max(asked, _SMALLEST_WITH_IMAGES)
    return min(asked, longest) if longest else asked


def _batch(setup: Setup, given: Mapping[str, Any], machine: Machine, cells: int) -> int:
    cuda = [gpu.memory.total for gpu in machine.gpus if gpu.memory and gpu.cuda]
    return defaults.default_batch(
        cells,
        defaults.predicted_bytes(setup.model, _file_bytes(setup), cells),
        sum(gpu.free for gpu in machine.gpus),
        flash_attn=given.get("flash_attention") is not False,
        smallest_gpu=min(cuda, default=None),
    )


def _file_bytes(setup: Setup) -> int:
    return sum(stored_bytes(setup.model.weights, PLAIN[setup.model.dtype]).values())
