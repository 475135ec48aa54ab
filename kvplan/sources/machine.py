"""The GPUs of this machine → GpuSpecs: which are meant, and what is known of them."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kvplan.errors import AmbiguousNameError, NoDeviceError, UsageError
from kvplan.hardware import DetectedGpu, Fact, GpuSpec, MigInstance, torch_shares
from kvplan.sources.gpus import find_gpu, host_of
from kvplan.units import GIB, MIB, format_bytes

NAME_ONE = "Name a GPU, like --gpu H100-SXM-80GB; `kvplan gpus list` shows all."

# A card whose memory is further from its spec than this is another variant. ECC alone takes 6 %.
_SAME_MEMORY = 0.1
# ECC takes more of a card than drivers differ by.
_ECC_SHARE = 0.02

_MEMORY_FILE = Path("/proc/meminfo")
_AVAILABLE = re.compile(r"^MemAvailable:\s+(\d+) kB$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Device:
    """What a program sees as one device: a GPU, or an instance of a partitioned one."""

    gpu: DetectedGpu
    instance: MigInstance | None = None

    @property
    def kind(self) -> tuple[str, str | None, int | None]:
        """What devices have in common that can be planned for as one."""
        if self.instance:
            return self.gpu.name, self.instance.profile, self.instance.total_bytes
        return self.gpu.name, None, self.gpu.total_bytes

    @property
    def used_by_others(self) -> int:
        """Bytes that other programs hold; 0 where the driver does not say."""
        used = self.instance.used_bytes if self.instance else self.gpu.used_by_others
        return used or 0

    @property
    def label(self) -> str:
        """How messages name it."""
        if self.instance:
            return f"{self.gpu.index}: {self.instance.name} ({self.instance.uuid})"
        spec = f" ({self.gpu.spec_id})" if self.gpu.spec_id else ""
        return f"{self.gpu.index}: {self.gpu.name}{spec}"


def spec_id(name: str, total_bytes: int | None) -> str | None:
    """The id of the bundled spec for a name that the driver printed, if its memory fits too."""
    spec = _find(name)
    if spec is None or total_bytes is None or _fits(spec, total_bytes):
        return spec.id if spec else None
    # The same product with other memory: a modified card, or a variant of that name.
    product = spec.id.rpartition("-")[0]
    variant = _find(f"{product}-{round(total_bytes / GIB)}GB")
    return variant.id if variant and _fits(variant, total_bytes) else None


def auto_spec(gpus: Sequence[DetectedGpu], cuda_visible_devices: str | None) -> GpuSpec:
    """The spec of the one kind of device that programs see here.

    Raises:
        NoDeviceError: nothing visible, or memory unknown.
        AmbiguousNameError: several unlike devices.
    """
    devices = _visible(gpus, cuda_visible_devices)
    if not _alike(devices):
        raise _unlike(devices)
    return _spec(devices)


def auto_specs(
    gpus: Sequence[DetectedGpu], cuda_visible_devices: str | None
) -> tuple[GpuSpec, ...]:
    """One spec for devices that are alike, or else the specs of all in their order.

    Raises:
        NoDeviceError: nothing visible, or memory unknown.
    """
    devices = _visible(gpus, cuda_visible_devices)
    if _alike(devices):
        return (_spec(devices),)
    return tuple(_spec([device]) for device in devices)


def host_specs() -> tuple[GpuSpec, ...]:
    """The host's memory; nothing where the system does not tell it."""
    try:
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return ()
    if total < GIB:
        return ()
    free = _available(_MEMORY_FILE)
    used = 0 if free is None else max(0, total - free)
    return (host_of(total, used, "physical memory of this machine, by its operating system"),)


def _available(path: Path) -> int | None:
    """Bytes that programs could still have, where Linux tells."""
    try:
        match = _AVAILABLE.search(path.read_text(encoding="ascii", errors="replace"))
    except OSError:
        return None
    return int(match[1]) * 1024 if match else None


def _alike(devices: Sequence[Device]) -> bool:
    return all(device.kind == devices[0].kind for device in devices)


def _spec(devices: Sequence[Device]) -> GpuSpec:
    """Of devices that are alike."""
    device = devices[0]
    spec = _instance_spec(device, device.instance) if device.instance else _gpu_spec(device.gpu)
    return spec.model_copy(update={"in_use": tuple(each.used_by_others for each in devices)})


def _visible(gpus: Sequence[DetectedGpu], setting: str | None) -> list[Device]:
    if setting is None:
        devices = [device for gpu in gpus for device in _devices_of(gpu)]
        if not devices:
            raise NoDeviceError(
                f"GPU {gpus[0].index} ({gpus[0].name}) is in MIG mode and has no instances.",
                hint="Create instances with `nvidia-smi mig`, or turn MIG off.",
            )
        return devices
    devices = []
    for entry in setting.split(","):
        chosen = _entry(gpus, entry.strip())
        if not chosen:
            break  # as CUDA does: what follows an entry that names nothing is not seen
        devices.extend(chosen)
    if not devices:
        raise NoDeviceError(
            f"CUDA_VISIBLE_DEVICES={setting[:60]!r} hides every GPU.",
            hint=f"Unset it. {NAME_ONE}",
        )
    return devices


def _devices_of(gpu: DetectedGpu) -> list[Device]:
    if gpu.mig_enabled:
        return [Device(gpu, instance) for instance in gpu.mig]
    return [Device(gpu)]


def _entry(gpus: Sequence[DetectedGpu], entry: str) -> list[Device]:
    if entry.isdecimal():
        return [device for gpu in gpus if gpu.index == int(entry) for device in _devices_of(gpu)]
    if entry.startswith("MIG-"):
        return [
            Device(gpu, instance)
            for gpu in gpus
            for instance in gpu.mig
            if instance.uuid.startswith(entry)
        ]
    if entry.startswith("GPU-"):
        return [device for gpu in gpus if gpu.uuid.startswith(entry) for device in _devices_of(gpu)]
    return []


def _unlike(devices: Sequence[Device]) -> AmbiguousNameError:
    listed = ", ".join(device.label for device in devices)
    ids = [device.gpu.spec_id for device in devices if device.gpu.spec_id and not device.instance]
    name = f"name one, like --gpu {ids[0]}, or " if ids else ""
    return AmbiguousNameError(
        f"This machine has unlike GPUs: {listed}.",
        hint=f"To plan for one kind, {name}choose with CUDA_VISIBLE_DEVICES.",
    )


def _gpu_spec(gpu: DetectedGpu) -> GpuSpec:
    bundled = find_gpu(gpu.spec_id) if gpu.spec_id else None
    if gpu.total_bytes is None:
        if bundled is None:
            raise NoDeviceError(
                f"The driver gives no memory for {gpu.name}, and no spec of that name is bundled.",
                hint="Give the memory: --gpu custom:48GiB.",
            )
        note = f"NVML (driver {gpu.driver_version}) gives no memory; the figure is the bundled one."
        return bundled.model_copy(update={"notes": (*bundled.notes, note)})
    memory = _read_memory(gpu, gpu.total_bytes)
    base = bundled or _unknown_gpu(gpu, memory)
    return base.model_copy(
        update={
            "driver_total_mib": memory,
            "torch_total_gib": _torch(bundled, memory),
            "notes": (*base.notes, *_use_notes(gpu), *_ecc_notes(gpu, bundled, memory)),
        }
    )


def _torch(bundled: GpuSpec | None, memory: Fact) -> Fact | None:
    """What torch sees of this card: as of the bundled one, by the share of what NVML reads."""
    if bundled is None or bundled.torch_total_gib is None or bundled.driver_total_mib is None:
        return None
    fact = bundled.torch_total_gib
    scale = memory.value / bundled.driver_total_mib.value
    as_bundled = abs(scale - 1) < 1e-4
    value = fact.value * scale
    # The stated extremes may belong to another total (ECC, drivers): no further than kin go.
    low, _, high = (share * memory.value * MIB / GIB for share in torch_shares(memory.value))
    if as_bundled:
        low, high = max(low, fact.low or fact.value), min(high, fact.high or fact.value)
    scaled = f"scaled to the {memory.value:,.0f} MiB that NVML reads here"
    return Fact(
        value=value,
        source=fact.source,
        low=min(low, value),
        high=max(high, value),
        note=fact.note if as_bundled else scaled,
    )


def _use_notes(gpu: DetectedGpu) -> tuple[str, ...]:
    if not gpu.used_by_others:
        return ()
    return (f"{format_bytes(gpu.used_by_others)} of its memory is used by other programs now.",)


def _ecc_notes(gpu: DetectedGpu, bundled: GpuSpec | None, memory: Fact) -> tuple[str, ...]:
    """Where error correction is what makes the card smaller, or larger, than the bundled figure."""
    if gpu.ecc is None or bundled is None or bundled.driver_total_mib is None:
        return ()
    usual = bundled.driver_total_mib.value
    if abs(memory.value / usual - 1) < _ECC_SHARE:
        return ()
    state = "on" if gpu.ecc else "off"
    given = f"the driver gives {memory.value:,.0f} MiB, the bundled figure is {usual:,.0f}"
    return (f"ECC is {state}: {given}.",)


def _read_memory(gpu: DetectedGpu, total_bytes: int) -> Fact:
    return Fact(value=total_bytes / MIB, source=f"NVML, driver {gpu.driver_version}")


def _unknown_gpu(gpu: DetectedGpu, memory: Fact) -> GpuSpec:
    return GpuSpec(
        id="-".join(gpu.name.removeprefix("NVIDIA ").split()) or gpu.uuid,
        name=gpu.name,
        vendor="nvidia",
        architecture="not known",
        compute_capability=gpu.compute_capability,
        compute_capability_source=f"NVML, driver {gpu.driver_version}",
        driver_total_mib=memory,
        notes=("No spec of this name is bundled: only what NVML says is known.",),
    )


def _instance_spec(device: Device, instance: MigInstance) -> GpuSpec:
    gpu = device.gpu
    if instance.total_bytes is None:
        raise NoDeviceError(
            f"The driver gives no memory for the instance {instance.name}.",
            hint="Give the memory: --gpu custom:10GiB.",
        )
    memory = _read_memory(gpu, instance.total_bytes)
    base = find_gpu(gpu.spec_id) if gpu.spec_id else _unknown_gpu(gpu, memory)
    return GpuSpec(
        id=f"{base.id}-MIG-{instance.profile or instance.index}",
        name=instance.name,
        vendor="nvidia",
        architecture=base.architecture,
        compute_capability=base.compute_capability,
        compute_capability_source=base.compute_capability_source,
        driver_total_mib=memory,
        notes=("An instance of a partitioned GPU: bandwidth and speed are not known.",),
    )


def _find(name: str) -> GpuSpec | None:
    try:
        return find_gpu(name)
    except UsageError:
        return None


def _fits(spec: GpuSpec, total_bytes: int) -> bool:
    if spec.driver_total_mib is not None:
        expected = spec.driver_total_mib.value * MIB
    elif spec.nominal_memory_gb is not None:
        expected = spec.nominal_memory_gb.value * GIB
    else:
        return False
    return abs(total_bytes / expected - 1) <= _SAME_MEMORY
