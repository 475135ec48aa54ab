"""GpuSpec: what a device offers, each value with its source."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from kvplan.units import GIB, MIB

Number = Annotated[float, Field(gt=0)]
Count = Annotated[int, Field(gt=0)]

# Where no source states what torch sees of a card, what it sees of its kin is taken. The share
# is the lowest and the highest of the cards for which both figures are known
# (gpu_specs/*.yaml: torch_total_gib over driver_total_mib).
TORCH_SHARE_LOW = 0.960
TORCH_SHARE = 0.985
TORCH_SHARE_HIGH = 1.0


class Fact(BaseModel):
    """A figure with its source.

    Attributes:
        low, high: Where sources disagree or drivers differ: the extremes that were stated.
        note: What the figure depends on.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    value: Number
    source: Annotated[str, Field(min_length=1)]
    low: Number | None = None
    high: Number | None = None
    note: str | None = None


class MigProfile(BaseModel):
    """A slice of a partitioned GPU, as the driver names it (``1g.10gb``)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    profile: str
    memory_gib: Number
    instances: Count | None = None
    source: Annotated[str, Field(min_length=1)]
    note: str | None = None


class GpuSpec(BaseModel):
    """A device.

    At least one of ``torch_total_gib``, ``driver_total_mib`` and ``nominal_memory_gb`` is given.

    Attributes:
        id: PRODUCT[-FORM]-MEMORY.
        aliases: Other names people and tools use for it.
        compute_capability: CUDA's ``major.minor``, or None for other vendors.
        nominal_memory_gb: The figure on the box. Whether its GB are 10^9 bytes is up to the vendor.
        driver_total_mib: What NVML (nvidia-smi, rocm-smi) prints as total.
        torch_total_gib: What ``torch.cuda.mem_get_info()`` gives as total.
        memory_bandwidth_gb_s: 10^9 bytes a second.
        tflops_*: Dense (not sparse) tensor throughput.
        nvlink_gb_s: Both directions together, 10^9 bytes a second; other vendors' links likewise.
        shared_memory: The memory is the host's own (Apple, GB10, Jetson).
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    name: str
    vendor: Literal["nvidia", "amd", "intel", "apple", "google", "aws", "custom"]
    architecture: str
    aliases: tuple[str, ...] = ()
    compute_capability: str | None = None
    compute_capability_source: str | None = None
    nominal_memory_gb: Fact | None = None
    driver_total_mib: Fact | None = None
    torch_total_gib: Fact | None = None
    memory_bandwidth_gb_s: Fact | None = None
    tflops_fp16: Fact | None = None
    tflops_bf16: Fact | None = None
    tflops_fp8: Fact | None = None
    tflops_fp4: Fact | None = None
    tops_int8: Fact | None = None
    nvlink_gb_s: Fact | None = None
    pcie_generation: Fact | None = None
    power_watts: Fact | None = None
    shared_memory: bool = False
    mig: tuple[MigProfile, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def sm(self) -> tuple[int, int] | None:
        """Compute capability as (major, minor), or None."""
        if self.compute_capability is None:
            return None
        major, minor = self.compute_capability.split(".")
        return int(major), int(minor)


class DeviceMemory(BaseModel):
    """Total memory of one device as an engine sees it, in bytes."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    total: int
    low: int
    high: int
    source: str
    confidence: Literal["exact", "derived", "calibrated", "assumed"]


def device_memory(gpu: GpuSpec) -> DeviceMemory:
    """What torch, and so an engine, sees of the device: the best figure that a source states."""
    if gpu.torch_total_gib is not None:
        return _scaled(gpu.torch_total_gib, GIB, "derived")
    if gpu.driver_total_mib is not None:
        return _torch_share(gpu.driver_total_mib, MIB, "what the driver prints")
    if gpu.nominal_memory_gb is not None:
        return _torch_share(gpu.nominal_memory_gb, GIB, "the nominal memory")
    raise ValueError(f"{gpu.id} states no memory")


def _scaled(
    fact: Fact, unit: int, confidence: Literal["exact", "derived", "assumed"]
) -> DeviceMemory:
    return DeviceMemory(
        total=int(fact.value * unit),
        low=int((fact.low or fact.value) * unit),
        high=int((fact.high or fact.value) * unit),
        source=fact.source,
        confidence=confidence,
    )


def _torch_share(fact: Fact, unit: int, of_what: str) -> DeviceMemory:
    return DeviceMemory(
        total=int(fact.value * unit * TORCH_SHARE),
        low=int((fact.low or fact.value) * unit * TORCH_SHARE_LOW),
        high=int((fact.high or fact.value) * unit * TORCH_SHARE_HIGH),
        source=f"{TORCH_SHARE} of {of_what} ({fact.source}); torch's own figure is not known",
        confidence="assumed",
    )
