"""The GPUs and the host that a configuration may use, and what is free on each.

llama.cpp takes no share of a card: it allocates what it needs, and a start fails where that is not
free. What the driver's context and the process hold beside its buffers is known from few starts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from kvplan.engines.base import Setup
from kvplan.errors import UsageError
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


@dataclass(frozen=True, slots=True)
class Device:
    """A GPU, or the host.

    Attributes:
        name: ``GPU0``, ``CPU``.
        memory: What it has; None: of the host, and nobody said.
        cuda: Whether it is an NVIDIA GPU.
    """

    name: str
    id: str
    backend: Backend
    memory: DeviceMemory | None
    cuda: bool = False

    @property
    def runtime(self) -> tuple[int, int, int]:
        """Bytes beside the buffers: likely, low, high."""
        likely, low, high = RUNTIME_MIB[self.backend]
        return likely * MIB, low * MIB, high * MIB

    @property
    def free(self) -> int:
        """Bytes that an idle device offers to the process."""
        return max(0, (self.memory.total if self.memory else 0) - self.runtime[0])


@dataclass(frozen=True, slots=True)
class Machine:
    """All devices of one process."""

    gpus: tuple[Device, ...]
    host: Device

    @property
    def devices(self) -> tuple[Device, ...]:
        """The GPUs in order, then the host."""
        return (*self.gpus, self.host)


def machine_of(setup: Setup, shares: tuple[float, ...]) -> Machine:
    """The devices that a setup names.

    Args:
        setup: ``gpu`` and ``others``; several alike are asked for with the pipeline size, or by a
            share for each.
        shares: tensor_split.

    Raises:
        UsageError: shares for more devices than there are, or none that is a GPU.
    """
    named = (setup.gpu, *setup.others)
    hosts = [spec for spec in named if is_host(spec)]
    gpus = [spec for spec in named if not is_host(spec)]
    if len(hosts) > 1:
        raise UsageError("A machine has one host.", hint="Name one cpu:SIZE.")
    copies = setup.parallelism.pp
    if len(gpus) > 1 and copies not in (1, len(gpus)):
        raise UsageError(
            f"{len(gpus)} GPUs are named, and --pp asks for {copies}.", hint="Leave out --pp."
        )
    if len(gpus) == 1:
        gpus *= max(copies, len(shares))
    if shares and len(shares) > len(gpus):
        raise UsageError(
            f"tensor_split lists {len(shares)} GPUs of {len(gpus)}.",
            hint="Give one share for each GPU.",
        )
    return Machine(
        gpus=tuple(_gpu(index, spec) for index, spec in enumerate(gpus)),
        host=_host(hosts[0] if hosts else None),
    )


def is_host(spec: GpuSpec) -> bool:
    """Whether the spec is the host's memory."""
    return spec.vendor == "cpu"


def _gpu(index: int, spec: GpuSpec) -> Device:
    backend: Backend = "metal" if spec.vendor == "apple" else "gpu"
    return Device(
        f"GPU{index}", spec.id, backend, device_memory(spec), cuda=spec.vendor == "nvidia"
    )


def _host(spec: GpuSpec | None) -> Device:
    return Device("CPU", spec.id if spec else "host", "cpu", device_memory(spec) if spec else None)
