"""GpuSpec: what a device offers, each value with its source. DetectedGpu: what a driver reports."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from kvplan.errors import InternalError
from kvplan.units import GIB, MIB

Number = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Count = Annotated[int, Field(gt=0)]
Text = Annotated[str, Field(min_length=1)]
Confidence = Literal["exact", "derived", "calibrated", "assumed"]

# Where no source states what torch sees of a card, what it sees of its kin is taken: the lowest,
# the median and the highest share over the cards of gpu_specs/ that state both figures.
# tests/unit/test_hardware.py recomputes them.
Shares = tuple[float, float, float]
LARGE_MIB = 64 * 1024
# torch_total_gib over driver_total_mib: 20 cards below 64 GiB, 10 from there on.
TORCH_OF_DRIVER: Shares = (0.970, 0.985, 1.0)
TORCH_OF_DRIVER_LARGE: Shares = (0.989, 0.994, 0.998)
# torch_total_gib over nominal_memory_gb, its GB read as GiB: 33 cards. Of memory shared with the
# host torch sees less: 0.951 on the GB10, the only such device for which it is known.
TORCH_OF_NOMINAL: Shares = (0.910, 0.985, 1.0)
TORCH_OF_SHARED: Shares = (0.910, 0.951, 1.0)


class Fact(BaseModel):
    """A figure with its source.

    Attributes:
        low, high: Where sources disagree or drivers differ: the extremes.
        note: What the figure depends on.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    value: Number
    source: Text
    low: Number | None = None
    high: Number | None = None
    note: str | None = None

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if (self.low or self.value) > self.value or (self.high or self.value) < self.value:
            raise ValueError("low, value and high are not in this order")
        return self


class MigProfile(BaseModel):
    """A slice of a partitioned GPU, as the driver names it (``1g.10gb``).

    Attributes:
        memory_gib: What the driver gives one instance.
        instances: How many of them the GPU holds at most.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    profile: Text
    memory_gib: Number
    instances: Count | None = None
    source: Text
    note: str | None = None


class GpuSpec(BaseModel):
    """A device.

    At least one of ``torch_total_gib``, ``driver_total_mib`` and ``nominal_memory_gb`` is given.

    Attributes:
        id: PRODUCT[-FORM]-MEMORY.
        name: What the driver calls it.
        aliases: Other names people and tools use for it.
        compute_capability: CUDA's ``major.minor``, or None for other vendors.
        nominal_memory_gb: The figure on the box. Whether its GB are 2^30 or 10^9 bytes is up to
            the vendor.
        driver_total_mib: What NVML (nvidia-smi) or rocm-smi prints as total; for Apple what Metal
            recommends at most.
        torch_total_gib: What ``torch.cuda.mem_get_info()`` gives as total.
        memory_bandwidth_gb_s: 10^9 bytes a second.
        tflops_*: Dense (not sparse) tensor throughput.
        link_gb_s: To the other devices of its node (NVLink, xGMI, NeuronLink), both directions
            together, 10^9 bytes a second.
        shared_memory: The memory is the host's own (Apple, GB10, Jetson).
        in_use: Of a device that was read on this machine: bytes that other programs hold on each
            of its like, in the order in which engines take them.

    Example:
        >>> half = GpuSpec(
        ...     id="Half-16GB",
        ...     name="Half a card",
        ...     vendor="nvidia",
        ...     architecture="Ada",
        ...     compute_capability="8.9",
        ...     compute_capability_source="its data sheet",
        ...     torch_total_gib={"value": 15.7, "source": "measured"},
        ... )
        >>> half.sm
        (8, 9)
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    id: Text
    name: Text
    vendor: Literal["nvidia", "amd", "intel", "apple", "google", "aws", "custom", "cpu"]
    architecture: Text
    aliases: tuple[Text, ...] = ()
    compute_capability: Annotated[str, Field(pattern=r"^\d{1,2}\.\d$")] | None = None
    compute_capability_source: Text | None = None
    nominal_memory_gb: Fact | None = None
    driver_total_mib: Fact | None = None
    torch_total_gib: Fact | None = None
    memory_bandwidth_gb_s: Fact | None = None
    tflops_fp16: Fact | None = None
    tflops_bf16: Fact | None = None
    tflops_fp8: Fact | None = None
    tflops_fp4: Fact | None = None
    tops_int8: Fact | None = None
    link_gb_s: Fact | None = None
    pcie_generation: Fact | None = None
    power_watts: Fact | None = None
    shared_memory: bool = False
    mig: tuple[MigProfile, ...] = ()
    notes: tuple[Text, ...] = ()
    in_use: tuple[Annotated[int, Field(ge=0)], ...] = Field(default=(), exclude_if=lambda v: not v)

    @model_validator(mode="after")
    def _states_memory(self) -> Self:
        if not (self.torch_total_gib or self.driver_total_mib or self.nominal_memory_gb):
            raise ValueError(
                "no memory is stated: give torch_total_gib, driver_total_mib or nominal_memory_gb"
            )
        return self

    @property
    def sm(self) -> tuple[int, int] | None:
        """Compute capability as (major, minor), or None."""
        if self.compute_capability is None:
            return None
        major, minor = self.compute_capability.split(".")
        return int(major), int(minor)


class DeviceMemory(BaseModel):
    """Total memory of one device as an engine sees it, in bytes."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    total: int
    low: int
    high: int
    source: str
    confidence: Confidence


class MigInstance(BaseModel):
    """An existing slice of a partitioned GPU.

    Attributes:
        profile: As the driver names it (``1g.10gb``), or None where it does not say.
        total_bytes: Its memory as NVML gives it, or None.
        used_bytes: What is in use of it, or None.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    index: int
    name: str
    uuid: str
    profile: str | None
    total_bytes: int | None
    used_bytes: int | None = None


class DetectedGpu(BaseModel):
    """A GPU of this machine, as its driver reports it. None: the driver does not say.

    Attributes:
        index: NVML's number: the order of the PCI bus.
        total_bytes: The total that nvidia-smi prints.
        reserved_bytes: Kept by driver and firmware; not part of used_bytes where it is known.
        used_by_others: What is in use, less what this process holds.
        processes: How many other processes NVML sees on it (none of other containers).
        ecc: Whether ECC is on.
        mig_enabled: Whether it is partitioned; ``mig`` holds its instances.
        spec_id: The bundled spec of that name and memory.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    index: int
    name: str
    uuid: str
    driver_version: str
    compute_capability: str | None = None
    total_bytes: int | None = None
    free_bytes: int | None = None
    used_bytes: int | None = None
    reserved_bytes: int | None = None
    used_by_others: int | None = None
    processes: int | None = None
    ecc: bool | None = None
    mig_enabled: bool | None = None
    mig: tuple[MigInstance, ...] = ()
    spec_id: str | None = None


def device_memory(gpu: GpuSpec) -> DeviceMemory:
    """What torch, and so an engine, sees of the device: the best figure that a source states."""
    if gpu.torch_total_gib is not None:
        confidence: Confidence = "exact" if gpu.vendor in ("custom", "cpu") else "derived"
        return _memory(gpu.torch_total_gib, GIB, confidence)
    if gpu.vendor == "apple":
        return _metal_memory(gpu)
    if gpu.driver_total_mib is not None:
        shares = torch_shares(gpu.driver_total_mib.value)
        return _share(gpu.driver_total_mib, MIB, shares, "what the driver prints")
    if gpu.nominal_memory_gb is not None:
        shares = TORCH_OF_SHARED if gpu.shared_memory else TORCH_OF_NOMINAL
        return _share(gpu.nominal_memory_gb, GIB, shares, "the nominal memory")
    raise InternalError(f"{gpu.id} states no memory.")


def torch_shares(driver_total_mib: float) -> Shares:
    """Lowest, usual and highest share that torch sees of what the driver prints as total."""
    return TORCH_OF_DRIVER_LARGE if driver_total_mib >= LARGE_MIB else TORCH_OF_DRIVER


def _memory(fact: Fact, unit: int, confidence: Confidence) -> DeviceMemory:
    return DeviceMemory(
        total=round(fact.value * unit),
        low=round((fact.low or fact.value) * unit),
        high=round((fact.high or fact.value) * unit),
        source=fact.source,
        confidence=confidence,
    )


def _share(fact: Fact, unit: int, shares: Shares, of: str) -> DeviceMemory:
    low, share, high = shares
    return DeviceMemory(
        total=round(fact.value * unit * share),
        low=round((fact.low or fact.value) * unit * low),
        high=round((fact.high or fact.value) * unit * high),
        source=f"{share} of {of} ({fact.source}); torch's own figure is not known",
        confidence="assumed",
    )


# What Metal lets the GPU use by default (recommendedMaxWorkingSetSize), as a share of the memory:
# 2/3 up to 32 GB (ollama/ollama#434: 21,845 of 32 GiB on an M2 Max), 3/4 above
# (ggml-org/llama.cpp#3213: 73,728 MiB of 96 GiB on an M2 Max). Recent systems grant up to 0.78
# (38,338 MiB on an M5 Pro, of 48 GiB if it is one). iogpu.wired_limit_mb changes it.
METAL_SMALL_GB, METAL_SHARE_SMALL, METAL_SHARE, METAL_SHARE_HIGH = 32, 0.6666, 0.75, 0.78


def _metal_memory(gpu: GpuSpec) -> DeviceMemory:
    if gpu.driver_total_mib is not None:
        return _memory(gpu.driver_total_mib, MIB, "derived")
    if gpu.nominal_memory_gb is None:
        raise InternalError(f"{gpu.id} states no memory.")
    small = gpu.nominal_memory_gb.value <= METAL_SMALL_GB
    share = METAL_SHARE_SMALL if small else METAL_SHARE
    memory = _share(gpu.nominal_memory_gb, GIB, (share, share, METAL_SHARE_HIGH), "the memory")
    source = f"{share} of the memory, the GPU's default limit ({gpu.nominal_memory_gb.source})"
    return memory.model_copy(update={"source": source})
