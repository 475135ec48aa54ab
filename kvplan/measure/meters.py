"""One way to ask how much memory is taken, on a GPU and on the CPU."""

from __future__ import annotations

import gc
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Protocol

import torch

from kvplan.errors import FactsError, NoDeviceError, shown
from kvplan.measure.tracker import Tracker

# The CPU's allocator raises the plain class; torch.OutOfMemoryError derives from it.
OUT_OF_MEMORY = RuntimeError


# How torch begins what a device, its driver or a missing kernel says.
_OF_THE_DEVICE = ("CUDA error", "HIP error", "CUDA driver", "no kernel image", "cuBLAS", "CUBLAS")


def is_of_the_device(error: RuntimeError) -> bool:
    """Whether the device failed, not this program."""
    if isinstance(error, torch.AcceleratorError):
        return True
    return any(words in str(error) for words in _OF_THE_DEVICE)


def device_failed(name: str, error: RuntimeError) -> FactsError:
    """What to say of a device that failed."""
    said = str(error).strip().partition("\n")[0]
    return FactsError(
        f"{name} failed: {shown(said)}.",
        hint="Check that others leave room on it, and that torch was built for it and its driver.",
    )


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
        self.device: str = f"cuda:{index}"
        properties = torch.cuda.get_device_properties(index)
        self.name: str = str(properties.name)
        torch.cuda.set_device(index)
        torch.empty(1, device=self.device)
        torch.cuda.synchronize()
        self.total: int = int(torch.cuda.mem_get_info(index)[1])

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


def _started(index: int) -> CudaMeter:
    """The device with its context, for which a full one may have no room."""
    try:
        return CudaMeter(index)
    except RuntimeError as error:
        raise device_failed(f"GPU {index}", error) from error


def describe(index: int = 0) -> tuple[str, int]:
    """The name of a GPU and all its memory, as torch tells them.

    Raises:
        NoDeviceError: torch sees no such device.
    """
    _check(index)
    properties = torch.cuda.get_device_properties(index)
    return str(properties.name), int(properties.total_memory)


def _check(index: int) -> None:
    if not torch.cuda.is_available() or index >= torch.cuda.device_count():
        raise NoDeviceError(
            f"torch {torch.__version__} sees no GPU {index} here.",
            hint="Install a build of torch for this machine's GPU, or count on the CPU:"
            " --device cpu --gpu NAME.",
        )


@contextmanager
def cuda_meter(index: int = 0) -> Iterator[CudaMeter]:
    """A GPU; what torch holds unused is given back at the end, however it comes.

    Raises:
        NoDeviceError: torch sees no such device.
    """
    _check(index)
    try:
        yield _started(index)
    except BaseException as error:  # Ctrl-C too
        traceback.clear_frames(error.__traceback__)  # the tensors that the calls on the way hold
        raise
    finally:
        gc.collect()
        with suppress(RuntimeError):  # a device that failed fails here too
            torch.cuda.empty_cache()
