"""The GPUs and the host that a configuration may use, and what is free on each.

llama.cpp takes no share of a card: it allocates what it needs, and a start fails where that is not
free. What the driver's context and the process hold beside its buffers is known from few starts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from kvplan.engines.base import Setup
from kvplan.errors import EngineRefusesError, UsageError
from kvplan.hardware import DeviceMemory, GpuSpec, device_memory
from kvplan.units import MIB

Backend = Literal["gpu", "metal", "cpu"]

# Beside its buffers a process holds 132 to 135 MiB of an RTX 3060 (AdarGit008/mcgyvr-lab, b10644,
# n = 2), 264 MiB are taken of an RTX 3090 before it loads (ollama/ollama#17482), and 267 to
# 281 MiB of a Radeon Pro VII (ggml-org/llama.cpp#17058, n = 2).
RUNTIME_MIB = {"gpu": (250, 130, 600), "metal": (0, 0, 200), "cpu": (100, 0, 500)}
RUNTIME_SOURCE = (
    "the driver's context and the process: n=5 of public llama.cpp starts (CUDA 132-264 MiB, "
    "ROCm 267-281 MiB); thin"
)

# GGML_SCHED_MAX_BACKENDS of ggml/src/ggml-backend.cpp is 16, and the host is one of them. With more
# a start stops at an assertion: ggml-org/llama.cpp#11433, ollama/ollama#8920.
MOST_GPUS = 15


@dataclass(frozen=True, slots=True)
class Device:
    """A GPU, or the host.

    Attributes:
        name: ``GPU0``, ``CPU``.
        memory: What it has; None: of the host, and nobody said.
        cuda: Whether it is an NVIDIA GPU.
        in_use: Bytes that other programs hold of it.
    """

    name: str
    id: str
    backend: Backend
    memory: DeviceMemory | None
    cuda: bool = False
    in_use: int = 0

    @property
    def runtime(self) -> tuple[int, int, int]:
        """Bytes beside the buffers: likely, low, high."""
        likely, low, high = RUNTIME_MIB[self.backend]
        return likely * MIB, low * MIB, high * MIB

    @property
    def free(self) -> int:
        """Bytes that the device offers to the process before it loads anything."""
        total = self.memory.total if self.memory else 0
        return max(0, total - self.runtime[0] - self.in_use)


@dataclass(frozen=True, slots=True)
class Machine:
    """All devices of one process."""

    gpus: tuple[Device, ...]
    host: Device

    @property
    def devices(self) -> tuple[Device, ...]:
        """The GPUs in order, then the host."""
        return (*self.gpus, self.host)

    @property
    def busiest(self) -> Device:
        """The GPU of which other programs hold most; the host where they hold nothing of GPUs."""
        gpu = max(self.gpus, key=lambda device: device.in_use, default=self.host)
        return gpu if gpu.in_use else self.host

    @property
    def idle(self) -> Machine:
        """The same machine if nobody else used it."""
        return Machine(
            gpus=tuple(replace(gpu, in_use=0) for gpu in self.gpus),
            host=replace(self.host, in_use=0),
        )


def machine_of(setup: Setup, shares: tuple[float, ...]) -> Machine:
    """The devices that a setup names.

    Args:
        setup: ``gpu`` and ``others``; several alike are asked for with the pipeline size, or by a
            share for each.
        shares: tensor_split.

    Raises:
        UsageError: shares for more devices than there are, or none that is a GPU; or budgets that
            are neither one nor one for each GPU.
        EngineRefusesError: more GPUs than one server takes.
    """
    hosts = [spec for spec in (setup.gpu, *setup.others) if is_host(spec)]
    if len(hosts) > 1:
        raise UsageError("A machine has one host.", hint="Name one cpu:SIZE.")
    gpus = _all_gpus(named_gpus(setup), setup.parallelism.pp, shares)
    if len(gpus) > MOST_GPUS:
        raise EngineRefusesError(
            f"llama.cpp takes at most {MOST_GPUS} GPUs beside the host, not {len(gpus)}.",
            hint=f"Give a server at most {MOST_GPUS}; --dp starts several servers.",
        )
    _check_budgets(setup.kv_budget, len(gpus))
    return Machine(
        gpus=tuple(
            _gpu(index, spec, _in_use(setup, spec, index)) for index, spec in enumerate(gpus)
        ),
        host=_host(hosts[0] if hosts else None),
    )


def is_host(spec: GpuSpec) -> bool:
    """Whether the spec is the host's memory."""
    return spec.vendor == "cpu"


def named_gpus(setup: Setup) -> tuple[GpuSpec, ...]:
    """GPUs that were named, each as often as it was."""
    return tuple(spec for spec in (setup.gpu, *setup.others) if not is_host(spec))


def _all_gpus(
    named: tuple[GpuSpec, ...], copies: int, shares: tuple[float, ...]
) -> tuple[GpuSpec, ...]:
    """Those named; of a single one as many as --pp says, or else as there are shares."""
    if len(named) > 1 and copies not in (1, len(named)):
        raise UsageError(
            f"{len(named)} GPUs are named, and --pp asks for {copies}.", hint="Leave out --pp."
        )
    gpus = named
    if len(named) == 1:
        gpus *= copies if copies > 1 else max(1, len(shares))
    if len(shares) > len(gpus):
        raise UsageError(
            f"tensor_split lists {len(shares)} GPUs of {len(gpus)}.",
            hint="Give one share for each GPU.",
        )
    return gpus


def _check_budgets(budget: tuple[int, ...] | None, gpus: int) -> None:
    """One for all, or one for each GPU; a box without any has the host's alone."""
    if budget is not None and len(budget) not in (1, max(1, gpus)):
        where = f"{gpus} GPU{'s' if gpus > 1 else ''}" if gpus else "the host alone"
        raise UsageError(
            f"{len(budget)} KV budgets were given for {where}.",
            hint="Give one for all, or one for each GPU of a server.",
        )


def _in_use(setup: Setup, spec: GpuSpec, index: int) -> int:
    """What others hold of a GPU; with several replicas, of the fullest that stands at its place."""
    spread = setup.parallelism
    place, step = (index, spread.pp) if len(named_gpus(setup)) == 1 else (0, 1)
    replicas = spec.in_use[place : place + step * spread.dp : step]
    return max(replicas, default=0)


def _gpu(index: int, spec: GpuSpec, in_use: int) -> Device:
    return Device(
        f"GPU{index}",
        spec.id,
        "metal" if spec.vendor == "apple" else "gpu",
        device_memory(spec),
        cuda=spec.vendor == "nvidia",
        in_use=in_use,
    )


def _host(spec: GpuSpec | None) -> Device:
    if spec is None:
        return Device("CPU", "host", "cpu", None)
    return Device("CPU", spec.id, "cpu", device_memory(spec), in_use=max(spec.in_use, default=0))
