"""One way to ask how much memory is taken, on a GPU and on the CPU."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

import torch

from kvplan.errors import NoDeviceError
from kvplan.measure.tracker import Tracker

# The CPU's allocator raises the plain class; torch.OutOfMemoryError derives from it.
OUT_OF_MEMORY = RuntimeError


def is_out_of_memory(error: RuntimeError) -> bool:
    """Whether torch found no memory, on whatever device."""
    return isinstance(error, torch.OutOfMemoryError) or "can't allocate memory" in str(error)


class Meter(Protocol):
    """A device and its memory, all in bytes.

    Attributes:
        name: The device's own name.
        device: How torch names it.
        total: All its memory, as torch sees it.
    """

    name: str
    device: str
    total: int

    def allocated(self) -> int:
        """Bytes of tensors."""
        ...

    def reserved(self) -> int:
        """Bytes that torch holds for tensors, in use or not."""
        ...

    def peak(self) -> int:
        """The most of `allocated` since `reset_peak`."""
        ...

    def reset_peak(self) -> None:
        """Starts the peak anew, after giving back what is unused."""
        ...

    def free(self) -> int:
        """Bytes that nobody holds."""
        ...


class CpuMeter:
    """Counts tensors on the CPU against a size that is made up: nothing else is known there."""

    device = "cpu"

    def __init__(self, tracker: Tracker, total: int, name: str = "cpu") -> None:
        self.name = name
        self.total = total
        self._tracker = tracker

    def allocated(self) -> int:
        """Bytes of tensors."""
        return self._tracker.live

    def reserved(self) -> int:
        """The same: nothing is held back here."""
        return self._tracker.live

    def peak(self) -> int:
        """The most of `allocated` since `reset_peak`."""
        return self._tracker.peak

    def reset_peak(self) -> None:
        """Starts the peak anew."""
        gc.collect()
        self._tracker.reset_peak()

    def free(self) -> int:
        """What is left of the size."""
        return self.total - self._tracker.live


class CudaMeter:
    """A CUDA or ROCm device by torch's statistics."""

    def __init__(self, index: int) -> None:
        self.device = f"cuda:{index}"
        properties = torch.cuda.get_device_properties(index)
        self.name = str(properties.name)
        self.uuid = str(getattr(properties, "uuid", ""))
        torch.cuda.set_device(index)
        torch.empty(1, device=self.device)
        torch.cuda.synchronize()
        self.total = int(torch.cuda.mem_get_info(index)[1])

    def allocated(self) -> int:
        """Bytes of tensors, each rounded up by torch's allocator."""
        return int(torch.cuda.memory_allocated(self.device))

    def reserved(self) -> int:
        """Bytes that torch's allocator holds."""
        return int(torch.cuda.memory_reserved(self.device))

    def peak(self) -> int:
        """The most of `allocated` since `reset_peak`."""
        torch.cuda.synchronize()
        return int(torch.cuda.max_memory_allocated(self.device))

    def reset_peak(self) -> None:
        """Starts the peak anew, after giving back what is unused."""
        gc.collect()
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(self.device)

    def free(self) -> int:
        """Bytes that nobody holds, as the driver says."""
        return int(torch.cuda.mem_get_info(self.device)[0])


@contextmanager
def cpu_meter(total: int, name: str = "cpu") -> Iterator[Meter]:
    """The CPU as a device of ``total`` bytes; tensors count while the context lasts."""
    with Tracker() as tracker:
        yield CpuMeter(tracker, total, name)


@contextmanager
def cuda_meter(index: int = 0) -> Iterator[CudaMeter]:
    """A GPU; what torch holds unused is given back at the end, however it comes.

    Raises:
        NoDeviceError: torch sees no such device.
    """
    if not torch.cuda.is_available() or index >= torch.cuda.device_count():
        raise NoDeviceError(
            f"torch {torch.__version__} sees no GPU {index} here.",
            hint="Install a build of torch for this machine's GPU, or count on the CPU with"
            " --device cpu.",
        )
    try:
        yield CudaMeter(index)
    finally:
        gc.collect()
        torch.cuda.empty_cache()
