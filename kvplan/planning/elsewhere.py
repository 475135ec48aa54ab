"""The same model on another GPU or another engine: what advice may try besides options."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kvplan.engines.base import Engine
from kvplan.hardware import GpuSpec, device_memory

if TYPE_CHECKING:
    from kvplan.planning.trials import Case, Trial

# Ids of bundled GPUs that servers have, by memory; what a change is tried with, smallest first.
# A card at home is followed by cards, one of a data centre by those of data centres.
_SERVERS = (
    "L4-24GB",
    "L40S-48GB",
    "A100-SXM-80GB",
    "H100-SXM-80GB",
    "H200-SXM-141GB",
    "B200-SXM-180GB",
    "B300-SXM-288GB",
)
_CARDS = ("RTX-4090-24GB", "RTX-5090-32GB", "RTX-6000-Ada-48GB", "RTX-PRO-6000-96GB")
_AMD = ("MI300X-192GB", "MI325X-256GB", "MI355X-288GB")
# Engines that serve from a pool: what one of them holds is what the others may hold.
SERVING = ("vllm", "sglang", "tensorrt-llm")


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """Where else a model may run.

    Attributes:
        gpu: The bundled GPU of an id.
        engines: By name.
    """

    gpu: Callable[[str], GpuSpec]
    engines: Mapping[str, Engine]


def larger_gpus(case: Case, trial: type[Trial]) -> Iterator[Trial]:
    """GPUs with more memory, of the same maker, the smallest first."""
    setup, elsewhere = case.setup, case.elsewhere
    bare = setup.gpu.vendor == "custom" or setup.others or setup.gpu.in_use or setup.profile
    if elsewhere is None or bare or setup.kv_budget is not None:
        return
    memory = device_memory(setup.gpu).total
    for name in _ladder(setup.gpu):
        gpu = elsewhere.gpu(name)
        if device_memory(gpu).total > memory:
            yield trial(
                action=f"Use {name} instead of {setup.gpu.id}",
                change={"gpu": name},
                gpu=gpu,
                ladder="gpu",
                pairs=False,
                cost="Other GPUs at another price: kvplan fit compares them.",
            )


def _ladder(gpu: GpuSpec) -> tuple[str, ...]:
    if gpu.vendor == "amd":
        return _AMD
    if gpu.vendor != "nvidia":
        return ()
    return _CARDS if gpu.id.startswith("RTX") else _SERVERS


def other_engines(case: Case, trial: type[Trial]) -> Iterator[Trial]:
    """Other servers; only where nothing is asked of this one in its own words."""
    setup, elsewhere = case.setup, case.elsewhere
    worded = setup.options or setup.draft or setup.profile or setup.kv_dtype != "auto"
    if elsewhere is None or worded or setup.version or case.engine.name not in SERVING:
        return
    if not setup.model.max_context:
        return  # each engine plans for a length of its own then
    for name in SERVING:
        if name != case.engine.name:
            yield trial(
                action=f"Serve it with {name} instead of {case.engine.name}",
                change={"engine": name},
                engine=elsewhere.engines[name],
                cost="Another server: other options, other speed; test it before you move.",
            )
