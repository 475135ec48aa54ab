"""NVML: what the NVIDIA driver says of this machine's GPUs. The only module that uses pynvml."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from kvplan.errors import NoDeviceError
from kvplan.hardware import DetectedGpu, GpuSpec, MigInstance
from kvplan.sources import machine

T = TypeVar("T")

_PROFILE = re.compile(r"\bMIG (\S+)$")


def detect() -> tuple[DetectedGpu, ...]:
    """All GPUs that the driver lists, whatever CUDA_VISIBLE_DEVICES says.

    Raises:
        NoDeviceError: no driver, no GPU, or a driver that fails.
    """
    with _driver() as nvml:
        driver = _ask(nvml, nvml.nvmlSystemGetDriverVersion) or "of unknown version"
        count = nvml.nvmlDeviceGetCount()
        found = tuple(_gpu(nvml, index, driver) for index in range(count))
    if not found:
        raise NoDeviceError(
            f"The NVIDIA driver ({driver}) finds no GPU on this machine.", hint=machine.NAME_ONE
        )
    return found


def auto_gpu() -> GpuSpec:
    """This machine's GPU: memory as NVML reads it, other facts from the bundled spec of that name.

    CUDA_VISIBLE_DEVICES is honoured where it holds numbers (in NVML's order, that of the PCI bus)
    or the start of UUIDs.

    Raises:
        NoDeviceError: no driver, no GPU, none visible, or one whose memory is not known.
        AmbiguousNameError: several unlike GPUs.
    """
    return machine.auto_spec(detect(), os.environ.get("CUDA_VISIBLE_DEVICES"))


def auto_machine(*, host: bool) -> tuple[GpuSpec, ...]:
    """This machine's GPUs, also unlike ones, each as `auto_gpu` reads it.

    GPUs that are alike are one spec, in use as each of them is.

    Args:
        host: Whether the host's memory is wanted too.

    Raises:
        NoDeviceError: see `auto_gpu`.
    """
    gpus = machine.auto_specs(detect(), os.environ.get("CUDA_VISIBLE_DEVICES"))
    return (*gpus, *(machine.host_specs() if host else ()))


@contextmanager
def _driver() -> Iterator[Any]:
    import pynvml  # noqa: PLC0415  needed only where a GPU is read

    try:
        pynvml.nvmlInit()
        try:
            yield pynvml
        finally:
            with suppress(pynvml.NVMLError):
                pynvml.nvmlShutdown()
    except pynvml.NVMLError as error:
        raise _no_device(pynvml, error) from None


def _no_device(nvml: Any, error: Any) -> NoDeviceError:
    if error.value == nvml.NVML_ERROR_LIBRARY_NOT_FOUND:
        return NoDeviceError(
            "This machine has no NVIDIA driver (libnvidia-ml.so.1 is not there).",
            hint=machine.NAME_ONE,
        )
    if error.value == nvml.NVML_ERROR_DRIVER_NOT_LOADED:
        return NoDeviceError(
            "The NVIDIA driver is installed but not loaded.",
            hint=f"Load it (`modprobe nvidia`). {machine.NAME_ONE}",
        )
    if error.value == nvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH:
        return NoDeviceError(
            "The NVIDIA driver and its library are of different versions.",
            hint=f"Restart the machine after the driver's update. {machine.NAME_ONE}",
        )
    return NoDeviceError(f"The NVIDIA driver failed: {error}.", hint=machine.NAME_ONE)


def _ask(nvml: Any, question: Callable[..., T], *arguments: Any) -> T | None:
    """An answer, or None where this device or driver has none to give."""
    try:
        return question(*arguments)
    except nvml.NVMLError as error:
        if error.value in (
            nvml.NVML_ERROR_NOT_SUPPORTED,
            nvml.NVML_ERROR_FUNCTION_NOT_FOUND,
            nvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH,
            nvml.NVML_ERROR_NO_PERMISSION,
            nvml.NVML_ERROR_NOT_FOUND,
        ):
            return None
        raise


def _gpu(nvml: Any, index: int, driver: str) -> DetectedGpu:
    handle = nvml.nvmlDeviceGetHandleByIndex(index)
    name = nvml.nvmlDeviceGetName(handle)
    memory = _memory(nvml, handle)
    total = memory.total if memory else None
    capability = _ask(nvml, nvml.nvmlDeviceGetCudaComputeCapability, handle)
    ecc = _ask(nvml, nvml.nvmlDeviceGetEccMode, handle)
    mig = _ask(nvml, nvml.nvmlDeviceGetMigMode, handle)
    processes = _processes(nvml, handle)
    return DetectedGpu(
        index=index,
        name=name,
        uuid=nvml.nvmlDeviceGetUUID(handle),
        driver_version=driver,
        compute_capability=f"{capability[0]}.{capability[1]}" if capability else None,
        total_bytes=total,
        free_bytes=memory.free if memory else None,
        used_bytes=memory.used if memory else None,
        # Only the second version of the answer tells it apart from what is used.
        reserved_bytes=memory.reserved if hasattr(memory, "reserved") else None,
        used_by_others=_used_by_others(memory, processes),
        processes=None if processes is None else len(processes.keys() - {os.getpid()}),
        ecc=None if ecc is None else bool(ecc[0]),
        mig_enabled=None if mig is None else bool(mig[0]),
        mig=_instances(nvml, handle) if mig and mig[0] else (),
        spec_id=machine.spec_id(name, total),
    )


def _memory(nvml: Any, handle: Any) -> Any:
    memory = _ask(nvml, nvml.nvmlDeviceGetMemoryInfo, handle, nvml.nvmlMemory_v2)
    return memory or _ask(nvml, nvml.nvmlDeviceGetMemoryInfo, handle)


def _processes(nvml: Any, handle: Any) -> dict[int, int] | None:
    """Bytes by process id; a process whose bytes are not told counts as 0."""
    found: dict[int, int] = {}
    compute = _ask(nvml, nvml.nvmlDeviceGetComputeRunningProcesses_v3, handle)
    graphics = _ask(nvml, nvml.nvmlDeviceGetGraphicsRunningProcesses_v3, handle)
    for process in (*(compute or ()), *(graphics or ())):
        found[process.pid] = max(found.get(process.pid, 0), process.usedGpuMemory or 0)
    return None if compute is None and graphics is None else found


def _used_by_others(memory: Any, processes: dict[int, int] | None) -> int | None:
    if not memory:
        return None
    own = (processes or {}).get(os.getpid(), 0)
    return max(0, int(memory.used) - own)


def _instances(nvml: Any, handle: Any) -> tuple[MigInstance, ...]:
    found = []
    for index in range(_ask(nvml, nvml.nvmlDeviceGetMaxMigDeviceCount, handle) or 0):
        instance = _ask(nvml, nvml.nvmlDeviceGetMigDeviceHandleByIndex, handle, index)
        if instance is None:
            continue  # the slot is free
        name = nvml.nvmlDeviceGetName(instance)
        profile = _PROFILE.search(name)
        memory = _memory(nvml, instance)
        found.append(
            MigInstance(
                index=index,
                name=name,
                uuid=nvml.nvmlDeviceGetUUID(instance),
                profile=profile[1] if profile else None,
                total_bytes=memory.total if memory else None,
                used_bytes=memory.used if memory else None,
            )
        )
    return tuple(found)
